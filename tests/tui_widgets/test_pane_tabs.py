"""The line of panes: every key on it at any width, and a click means what it hits."""

import pytest

from agent_console.tui.widgets.pane_tabs import PaneKey, tabs_line

TITLES = ("Overview", "Approvals", "Agents", "Jobs", "Threads", "Routes", "Audit", "More")
TABS = tuple(PaneKey(str(place), title, f"pane({title!r})", title.lower()) for place, title in enumerate(TITLES))


@pytest.mark.parametrize("shown", TABS, ids=lambda tab: tab.name)
@pytest.mark.parametrize("width", [60, 72, 80, 200])
def test_every_pane_is_on_the_line_and_found_where_it_stands(width: int, shown: PaneKey) -> None:
    line, places = tabs_line(TABS, shown.name, width)

    assert line.cell_length == width
    for tab, place in zip(TABS, places, strict=True):
        text = line.plain[place.start : place.stop]
        assert text.startswith(f"{tab.key} {tab.title[:3]}")
        assert len(text) == len(place), "nothing of it is cut off at the edge"
    assert f"{shown.key} {shown.title}" in line.plain, "the one that is shown is never cut short"


def test_eighty_columns_have_room_for_all_titles() -> None:
    line, _ = tabs_line(TABS, "jobs", 80)

    assert all(title in line.plain for title in TITLES)
