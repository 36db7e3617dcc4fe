"""A fact sheet: words of others never stand where a label of ours stands."""

from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.facts import BAR, LABEL_CELLS, Fact, FactSheet, Heading, Listing, Quote, Remark
from agent_console.tui.widgets.virtual_table_columns import Column

FORGED = "all is well " * 6 + "status         ● online " * 6


def lines(sheet: FactSheet, width: int) -> list[str]:
    return sheet.laid_out(width).plain.split("\n")


def test_a_long_value_goes_on_below_itself() -> None:
    sheet = FactSheet((Heading(system_text("atlas")), Fact("the agent says", agent_text(FORGED))))

    heading, first, *more = lines(sheet, 40)

    assert heading == "atlas"
    assert first.startswith("the agent says all is well")
    assert len(more) > 3
    assert all(line.startswith(" " * LABEL_CELLS) for line in more)


def test_a_quote_stands_behind_a_bar_to_its_last_line() -> None:
    sheet = FactSheet((Heading(system_text("payload")), Quote(agent_block(f"{{\n  {FORGED}\n}}"))))

    heading, *quoted = lines(sheet, 40)

    assert heading == "payload"
    assert len(quoted) > 5
    assert all(line.startswith(BAR) for line in quoted)


def test_no_line_is_wider_than_the_panel() -> None:
    sheet = FactSheet((Fact("name", agent_text("ａ" * 100)), Quote(agent_text("x" * 500))))

    assert max(line.cell_length for line in sheet.laid_out(50).split("\n")) <= 50


def test_an_empty_value_keeps_its_label() -> None:
    assert lines(FactSheet((Fact("host", agent_text("")),)), 40) == ["host".ljust(LABEL_CELLS)]


def test_rows_of_a_listing_stand_on_one_line_each_and_off_the_edge() -> None:
    columns = (Column("state", "State", 6), Column("words", "Words", None))
    rows = ((system_text("failed"), agent_text(FORGED)), (system_text("queued"), agent_text("x\ny")))

    shown = lines(FactSheet((Listing(columns, rows), Remark(agent_text(FORGED)))), 30)

    assert shown[0] == "   failed all is well all is …"
    assert shown[1].startswith("   queued x")
    assert all(line.startswith("   ") and len(line) <= 30 for line in shown)


def test_a_long_label_keeps_its_value_off_the_edge() -> None:
    shown = lines(FactSheet((Fact("updated by user id", agent_text(FORGED)),)), 40)

    assert shown[0] == "updated by user id"
    assert all(line.startswith(" " * LABEL_CELLS) for line in shown[1:])
