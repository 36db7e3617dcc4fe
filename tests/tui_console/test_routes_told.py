"""What would happen and why, and what it was before: told as facts."""

from agent_console.domain.delegation import CHECKS, Rule
from agent_console.tui.panes.routes.explain import RULES
from tests.support.fleet import Fleet
from tests.tui_console.route_stage import on_pair, shows
from tests.tui_console.stage import console, press, shown_text, through_server, until


def test_every_check_has_its_words_in_its_order() -> None:
    """The last one has two names: the route, and that there is none."""
    assert [rule for rule in Rule if rule not in (Rule.NO_ROUTE, Rule.ERROR)] == list(RULES)
    assert len(RULES) == len(CHECKS)


async def test_why_one_agent_may_not_ask_another_is_told_rule_by_rule(story: Fleet) -> None:
    app = console(through_server(story), start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        await on_pair(pilot, story, "dispatch", "gantry")
        await press(pilot, "x")
        await shows(app, "asked now      ? waits for a person", "? asks a person, version 1")
        await shows(app, "9. route       the route between the two: ? waits for a person  decides")
        assert shown_text(app).count("✓ no objection") == 5

        story.execute("update agents set revoked_at = now(), revocation_reason = 'x' where name = 'gantry'")
        await press(pilot, "escape", "x")

        await shows(app, "2. target      can the other be asked: ✗ blocked  decides")
        assert "9. route       the route between the two: not asked any more" in shown_text(app)
        await press(pilot, "escape", "home")
        await on_pair(pilot, story, "juniper", "iris")
        await press(pilot, "h")
        await until(lambda: "This pair never had a route." in shown_text(app), "an empty history")
