"""The matrix of routes: readable with few agents and with many, and never more asked for than is shown."""

import pytest

from agent_console.domain.routes import MatrixQuery
from agent_console.repository.port import Topic
from agent_console.tui import app as app_module
from tests.attacks.hostile_strings import HOSTILE, dangers
from tests.support.fleet import Fleet
from tests.support.many_agents import add_agents
from tests.tui_console.route_stage import Ear, on_pair, pair_of, routes_of, settle, shows
from tests.tui_console.stage import announce, console, directly, loaded, press, shown_text, through_server, until
from tests.tui_console.test_hostile import storable

GONE = "update agents set deleted_at = now(), revoked_at = now(), revocation_reason = 'gone' where name = any(%s)"


def grid_lines(text: str) -> list[str]:
    """The matrix without the lines around it."""
    lines = text.splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith(" Routes"))
    end = next(place for place, line in enumerate(lines) if "no route, blocked" in line)
    return lines[begin + 1 : end - 2]


def column_names(lines: list[str], header: int) -> list[str]:
    """What is read from top to bottom above the cells."""
    columns = zip(*(line.ljust(80)[16:78] for line in lines[:header]), strict=True)
    return [name for letters in columns if (name := "".join(letters).strip())]


async def test_with_few_agents_every_cell_has_its_word(story: Fleet) -> None:
    story.execute(GONE, ["fathom", "gantry", "harbor", "iris", "juniper"])
    app = console(through_server(story), start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        await on_pair(pilot, story, "cartographer", "beacon")
        header, *rows = grid_lines(shown_text(app))

        assert header.split() == ["from", "↓", "to", "→", "atlas", "beacon", "cartograph…", "dispatch", "ember"]
        assert rows[2].split() == ["▸", "cartographer", "✓", "allowed", "?", "asks", "–", "·", "·"]
        await shows(app, "cartographer → beacon   ? asks a person   version 1, 19h ago by Ana Costa")
        await shows(app, "crawling costs money")


async def test_with_many_agents_only_what_is_seen_is_asked_for(
    story: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "POLL_SECONDS", 3600.0)
    add_agents(story, 190)
    ear = Ear(directly(story.working))
    app = console(ear, start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        lines = grid_lines(shown_text(app))
        tall = next(place for place, line in enumerate(lines) if "▸" in line)
        assert column_names(lines, tall)[:2] == ["atlas", "beacon"]
        assert [line.split()[0] for line in lines[tall + 1 : tall + 3]] == ["beacon", "cartographer"]
        opening = len(ear.of("routes.matrix"))

        await settle(pilot, "pagedown", "greater_than_sign", "greater_than_sign")

        lines = grid_lines(shown_text(app))
        rows = [line.replace("▸", "").split()[0] for line in lines[tall:]]
        assert all(line[-1] in "·–✓✗?" for line in lines[tall:])
        everybody = sorted(str(name) for (name,) in story.execute("select name from agents"))
        first = everybody.index(rows[0])
        assert rows == everybody[first : first + len(rows)]
        assert first == len(rows)
        assert column_names(lines, tall)[0] not in ("atlas", "n1")
        asked = [request for request in ear.of("routes.matrix") if isinstance(request, MatrixQuery)]
        assert opening <= 2
        assert len(asked) <= 6
        assert all(len(request.agents) <= 90 and request.limit <= 100 for request in asked)


async def test_the_cursor_keeps_its_pair_whoever_comes_and_goes(story: Fleet) -> None:
    app = console(directly(story.working), start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        await on_pair(pilot, story, "ember", "gantry")
        story.execute("update agents set name = 'aardvark' where name = 'juniper'")
        announce(story, Topic.AGENTS)
        await until(lambda: "aardvark" in shown_text(app), "the new name")
        assert pair_of(app) == ("ember", "gantry")
        story.execute(GONE, ["atlas", "beacon", "aardvark"])
        announce(story, Topic.AGENTS)
        await until(lambda: "atlas" not in shown_text(app), "who is gone")
        assert pair_of(app) == ("ember", "gantry")
        assert "ember → gantry   ✗ blocked" in shown_text(app)

        story.execute(GONE, ["gantry"])
        announce(story, Topic.AGENTS)
        await until(lambda: "gantry" not in shown_text(app), "its column is gone")

        assert pair_of(app) == ("ember", "harbor")


async def test_filter_and_order(story: Fleet) -> None:
    add_agents(story, 40)
    app = console(directly(story.working), start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, *"oo")
        await shows(app, "50 agents, largest families of names first")
        assert pair_of(app) == ("atlas", "atlas")
        await press(pilot, "g")
        await shows(app, "▸ n1 ")

        await pilot.press("slash", *"policy:asks", "enter")
        await shows(app, "3 × 2 agents")
        assert "dispatch" in shown_text(app)
        assert "fathom" not in shown_text(app)

        await pilot.press("escape", "slash", *"zzz")
        await shows(app, "No agent matches the filter.")
        await press(pilot, "escape")
        await shows(app, "50 agents")


@pytest.mark.rule("U002-2")
@pytest.mark.parametrize("who", ["viewer", "read-only"])
async def test_who_may_not_edit_is_offered_no_key_for_it_and_reads(story: Fleet, who: str) -> None:
    opening = directly(story.working, user="vera@example.com" if who == "viewer" else "ana@example.com")
    app = console(opening, start="routes", read_only=who == "read-only")
    async with app.run_test(size=(80, 24)) as pilot:
        await on_pair(pilot, story, "ember", "gantry")
        keys = app.active_bindings

        assert not {"e", "d", "Y"} & {key for key, active in keys.items() if active.enabled}
        assert keys["x"].enabled

        await press(pilot, "e", "enter")
        await until(lambda: app.detail is not None, "the route, to be read")
        await shows(app, "who writes code does not deploy it")
        assert "e" not in app.active_bindings or not app.active_bindings["e"].enabled


async def test_both_looks_are_of_the_same_pair_and_lead_on(story: Fleet) -> None:
    app = console(directly(story.working), start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        await on_pair(pilot, story, "ember", "gantry")
        await press(pilot, "m", "m")
        assert pair_of(app) == ("ember", "gantry")
        await press(pilot, "m")
        assert pair_of(app) == ("ember", "gantry")
        await press(pilot, "f", "f")
        await shows(app, "1 blocked")

        await press(pilot, "O")
        await until(lambda: app.detail is not None, "the agent that is asked")
        await shows(app, "gantry")
        await press(pilot, "escape", "R")
        await until(lambda: app.detail is not None, "the route")
        await shows(app, "who writes code does not deploy it")
        await pilot.press("l")
        await shows(app, "Audit trail of ember → gantry")


async def test_hostile_names_and_notes_are_harmless_text(story: Fleet) -> None:
    names = [f"{place} {storable(text)}"[:60] for place, text in enumerate(HOSTILE.values())]
    add_agents(story, len(names))
    for place, name in enumerate(names, start=1):
        story.execute("update agents set name = %s where name = %s", name, f"n{place}")
        story.execute("update a2a_routes set notes = %s", f"\x1b]52;c;aGk=\x07 [@click=app.quit] {name}")
    app = console(directly(story.working), start="routes")
    async with app.run_test(size=(200, 60)) as pilot:
        await loaded(pilot)
        seen = shown_text(app)
        for key in ("pagedown", "greater_than_sign", "m", "enter"):
            await press(pilot, key)
            seen += shown_text(app)

        assert "[@click=app.quit]" in seen
        assert r"\x1b]52;c" in seen
        assert dangers(seen.replace("\n", "")) == []


FAR_DOWN = """
    insert into a2a_routes (team_id, id, from_agent_id, to_agent_id, policy)
    select %s, ('01990000-0000-7000-a000-' || lpad(to_hex(row_number() over ()), 12, '0'))::uuid, f.id, t.id,
           'allowed'
      from agents f, agents t
     where f.id <> t.id and f.name like 'n%%' and t.name like 'n%%'
"""
LAST_OF_ALL = """
    update a2a_routes set id = overlay(id::text placing '0fffffff' from 1)::uuid
     where policy = 'requires_human_approval'
"""


async def test_the_list_goes_to_a_route_that_lies_pages_further_down(
    story: Fleet, nobody_looks_again: None
) -> None:
    add_agents(story, 20)
    story.execute("delete from a2a_routes where policy = 'blocked'")
    story.execute(FAR_DOWN, story.team_id())
    story.execute(LAST_OF_ALL)
    app = console(directly(story.working), start="routes")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await on_pair(pilot, story, "cartographer", "beacon")
        await until(lambda: routes_of(app).matrix_look.cell is not None, "its route")
        cell = routes_of(app).matrix_look.cell
        assert cell is not None

        await pilot.press("m")

        table = routes_of(app).list_look.table
        await until(lambda: table.cursor_id == str(cell.route_id), "the route of the pair")
        await press(pilot, "home")
        await until(lambda: table.cursor_index == 0, "the top")
        routes_of(app).list_look.go_to("rte_00000000000000000000000000")
        await shows(app, "The route of that pair")
