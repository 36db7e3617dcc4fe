"""Each hostile string on its way to a person: through the gate, a widget, the table and the JSON."""

import io
import json

import pytest
from pydantic import BaseModel
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Label, Static

from agent_console.cli.output import OutputForm, TableColumn, emit, emit_one
from agent_console.domain.safe_text import safe_block, safe_text, shortened
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from tests.attacks.hostile_strings import HOSTILE, dangers

each_attack = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())


class Agent(BaseModel):
    id: str
    name: str


class Screen(App[None]):
    """Each text in a Static and in a Label, as a line, as a block and as a fact of ours."""

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            for text in HOSTILE.values():
                yield Static(agent_text(text, limit=400), classes="line")
                yield Label(agent_block(text[:2_000]), classes="block")
                yield Static(system_text(text[:2_000], "bold"), classes="fact")


COLUMNS = [
    TableColumn[Agent]("id", lambda agent: agent.id),
    TableColumn[Agent]("name", lambda agent: agent.name),
]


def shown_lines(widget: Widget) -> list[str]:
    return [widget.render_line(y).text for y in range(widget.size.height)]


@each_attack
def test_it_passes_the_gate_as_harmless_text(text: str) -> None:
    shown = [safe_text(text), shortened(text, 80), *safe_block(text)]

    assert [found for line in shown for found in dangers(line)] == []


async def test_it_reaches_a_widget_as_plain_words() -> None:
    app = Screen()
    async with app.run_test(size=(80, 24)):
        drawn = [shown_lines(widget) for widget in app.query(".line, .block, .fact").results(Widget)]
        lines = [shown_lines(widget) for widget in app.query(".line").results(Widget)]

    assert [found for shown in drawn for line in shown for found in dangers(line)] == []
    assert {name: squeezed("".join(shown)) for name, shown in zip(HOSTILE, lines, strict=True)} == {
        name: squeezed(shortened(text, 400)) for name, text in HOSTILE.items()
    }


def squeezed(text: str) -> str:
    """Without blanks, which wrapping moves."""
    return text.replace(" ", "")


@each_attack
def test_it_is_harmless_in_content_of_any_length(text: str) -> None:
    contents = [agent_text(text), agent_block(text), system_text(text)]

    assert [found for content in contents for line in content.plain.split("\n") for found in dangers(line)] == []


@each_attack
def test_no_click_or_link_of_its_making_is_in_the_content(text: str) -> None:
    contents = [agent_text(text), agent_block(text), system_text(text)]

    assert [span for content in contents for span in content.spans] == []


@each_attack
@pytest.mark.parametrize("form", [OutputForm.TABLE, OutputForm.IDS])
def test_it_reaches_the_table_as_harmless_text_on_one_line(text: str, form: OutputForm) -> None:
    out = io.StringIO()

    emit([Agent(id=text, name=text)], COLUMNS, form, stdout=out)

    header = 1 if form is OutputForm.TABLE else 0
    lines = out.getvalue().split("\n")
    assert (len(lines) - header, [found for line in lines for found in dangers(line)]) == (2, [])


@each_attack
def test_it_reaches_the_detail_view_as_harmless_text(text: str) -> None:
    out = io.StringIO()

    emit_one(Agent(id="agt_1", name=text), COLUMNS, OutputForm.TABLE, stdout=out)

    assert [found for line in out.getvalue().split("\n") for found in dangers(line)] == []


@each_attack
def test_json_brings_it_back_unchanged_and_sends_only_ascii(text: str) -> None:
    out = io.StringIO()

    emit([Agent(id="agt_1", name=text)], COLUMNS, OutputForm.JSON, stdout=out)

    assert [found for line in out.getvalue().split("\n") for found in dangers(line)] == []
    assert out.getvalue().isascii()
    assert json.loads(out.getvalue())[0]["name"] == text


def test_the_catalogue_is_hostile() -> None:
    harmful = [name for name, text in HOSTILE.items() if dangers(text)]

    assert len(harmful) > len(HOSTILE) / 2
