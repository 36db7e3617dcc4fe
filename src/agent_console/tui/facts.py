"""A fact sheet: what is known of one thing, label by label."""

from dataclasses import dataclass

from textual.content import Content

from agent_console.tui.agent_text import system_text

LABEL_CELLS = 15


@dataclass(frozen=True)
class Fact:
    """A labelled value, or a heading when it has no label."""

    label: str
    value: Content


def fact(label: str, value: Content) -> Fact:
    return Fact(label, value)


def section(heading: Content) -> Fact:
    return Fact("", heading)


def fact_sheet(facts: list[Fact]) -> Content:
    line = system_text("\n")
    sheet = system_text("")
    for place, item in enumerate(facts):
        if place:
            sheet += line
        if item.label:
            sheet += system_text(item.label.ljust(LABEL_CELLS), "$foreground-muted") + item.value
        else:
            sheet += (line + item.value) if place else item.value
    return sheet
