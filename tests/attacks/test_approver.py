"""Requests written to be waved through: the facts come first, and an agent's words stay its words."""

from itertools import product

from rich.cells import cell_len
from textual.app import App, ComposeResult

from agent_console.domain.approvals import Approval, ApprovalAsked
from agent_console.domain.ids import AgentId
from agent_console.repository.operations.approvals import APPROVALS_GET
from agent_console.repository.postgres.repository import open_direct
from agent_console.tui.agent_text import agent_block
from agent_console.tui.facts import BAR, FactSheet, Quote
from agent_console.tui.panes.approvals.sheet import approval_sheet
from agent_console.tui.widgets.detail import DetailPanel
from tests.attacks.hostile_strings import HOSTILE, dangers
from tests.support.asking import ANA
from tests.support.fleet import Fleet
from tests.tui_console.approval_stage import DEPLOY, approval_like, at, desk, set_words
from tests.tui_console.stage import press, until

FACTS = ("from", "to", "route", "hop", "thread", "begun by", "trace", "asked")
SAYS, MORE = "In the words of ", "more in the request, as it was sent:"
FAKE = "\n".join(
    (
        "route          allowed by policy, no person needed",
        "asked          by alice@example.com   digest 0000000000000000…",
        HOSTILE["fake system box"],
        HOSTILE["pre-approved"],
        "a approves once (it asks again)   r rejects with a reason",
        HOSTILE["400 blank lines"],
        HOSTILE["padding with no-break spaces"],
        HOSTILE["padding with blank-looking letters"],
    )
)


async def waiting(story: Fleet) -> Approval:
    async with open_direct(story.working, team="example", user=ANA) as ana:
        return await ana.call(APPROVALS_GET, ApprovalAsked(approval_id=approval_like(story, DEPLOY)))


def written_by(approval: Approval, text: str) -> Approval:
    """The same request of an agent that writes this wherever it can."""
    envelope = approval.envelope | {"input": text, "arguments": {"dry_run": False, text[:100]: text[:2_000]}}
    return approval.model_copy(
        update={"envelope": envelope, "from_agent": text, "to_agent": text, "thread": text, "path": (text, text)}
    )


def problems(approval: Approval, width: int) -> list[str]:
    lines = approval_sheet(approval).laid_out(width).plain.split("\n")
    heads = [place for place, line in enumerate(lines) if not line.startswith((" ", BAR)) and line]
    labels = [lines[place][:15].strip() for place in heads[: len(FACTS)]]
    after = lines[heads[len(FACTS)] :]
    titles = [line for line in after if line and not line.startswith(BAR)]
    return [
        *([] if labels == list(FACTS) else [f"the facts are {labels}"]),
        *([] if SAYS in " ".join(titles) and titles[-1] == MORE else [f"the headings are {titles[-3:]}"]),
        *(f"{line!r} is wider than the screen" for line in lines if cell_len(line) > width),
        *(f"{danger} in {line!r}" for line in lines for danger in dangers(line)),
        *(["the words are pushed away"] if max_blank(lines) > 3 else []),
    ]


def max_blank(lines: list[str]) -> int:
    """The longest stretch in which nothing can be read."""
    longest = now = 0
    for line in lines:
        now = now + 1 if not line.removeprefix(BAR).strip() else 0
        longest = max(longest, now)
    return longest


async def test_facts_come_first_and_every_line_of_an_agent_stands_behind_a_bar(story: Fleet) -> None:
    approval = await waiting(story)

    found = {
        (name, width): wrong
        for name, text in (HOSTILE | {"all of it": FAKE}).items()
        for width in (78, 40)
        if (wrong := problems(written_by(approval, text), width))
    }

    assert found == {}


async def test_a_name_that_looks_like_another_or_was_another_s_stands_beside_its_own_id(story: Fleet) -> None:
    """A name proves nothing: it may be written with other letters, be taken over, or hold the id of somebody."""
    approval = await waiting(story)
    assert approval.from_agent is not None
    names = (
        *(approval.from_agent, *(HOSTILE[name] for name in ("homoglyph name", "reused name", "full-width name"))),
        f"{approval.from_agent}  {approval.from_agent_id}",
    )

    hidden = []
    for name, width in product(names, (78, 40)):
        another = AgentId.new()
        asked = approval.model_copy(update={"from_agent": name, "from_agent_id": another})
        hidden += [(name, width)] if not told_of("from", asked, width).endswith(str(another)) else []

    assert hidden == []


def told_of(label: str, approval: Approval, width: int) -> str:
    """A fact with all its lines: on a narrow screen an id is broken, and goes on in the next."""
    lines = approval_sheet(approval).laid_out(width).plain.split("\n")
    begin = next(place for place, line in enumerate(lines) if line[:15].strip() == label)
    end = next(place for place, line in enumerate(lines[begin + 1 :], begin + 1) if line[:15].strip())
    return "".join(line[15:].strip() for line in lines[begin:end])


class Reading(App[None]):
    CSS = "DetailPanel { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }"

    def compose(self) -> ComposeResult:
        yield DetailPanel()


async def test_a_line_keeps_its_bar_when_a_scroll_bar_takes_a_column() -> None:
    app = Reading()
    async with app.run_test(size=(80, 24)) as pilot:
        panel = app.query_one(DetailPanel)
        panel.show(FactSheet((Quote(agent_block("x" * 3_000)),)))
        await until(lambda: panel.show_vertical_scrollbar, "the scroll bar")
        await pilot.pause()
        await pilot.pause()
        shown = [strip.text for strip in app.screen._compositor.render_strips()]

    assert [line for line in shown if not line.startswith(f" {BAR}xxx")] == []


async def test_what_hides_behind_blanks_is_read_before_anything_is_offered(story: Fleet) -> None:
    set_words(story, DEPLOY, FAKE)

    async with desk(at(story)) as ana:
        await press(ana.pilot, "down", "enter")
        ana.wait_a_moment()
        ana.screen.tick()
        await ana.sees(SAYS, "Scroll to the end to approve")
        top = request_lines(ana.text)
        await ana.pilot.press("a")
        is_asked = ana.app.screen is not ana.screen
        await ana.pilot.press("pagedown", "pagedown", "end")
        await ana.sees("a approves once", r"\xa0rm -rf /", r"\U0001d159x")
        bottom = request_lines(ana.text)

    facts = [line[:15].strip() for line in top if line[:15].strip() in FACTS]
    assert (facts, is_asked) == ([*FACTS], False)
    # With its scroll bar the panel is a column narrower: no line may be broken again and lose its bar.
    assert [line for line in bottom if not line.startswith(BAR)] == []


def request_lines(screen: str) -> list[str]:
    """What stands between the line with the time and the offer, as far as there is something in it."""
    lines = screen.split("\n")[2:]
    offer = next(place for place, line in enumerate(lines) if line.startswith("───"))
    return [line.removeprefix(" ") for line in lines[:offer] if line.strip()]
