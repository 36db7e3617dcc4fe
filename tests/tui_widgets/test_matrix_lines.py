"""Names above the columns of a matrix: upright, and told apart also where there is no room for all letters."""

import pytest
from textual.content import Content

from agent_console.tui.widgets.matrix_lines import upright_name
from agent_console.tui.widgets.matrix_shape import Shape


@pytest.mark.parametrize(
    ("name", "header", "shown"),
    [
        ("iris", 6, "iris"),
        ("cartographer", 6, "carto…"),
        ("crawler-07", 6, "cra…07"),
        ("crawler12", 6, "cra…12"),
        ("worker-7f3a", 6, "w…7f3a"),
        ("worker-0123456789", 6, "w…6789"),
        ("region2-photos", 6, "regio…"),
        ("worker-07", 2, "w…"),
    ],
)
def test_a_name_that_is_too_long_keeps_the_number_that_tells_it_from_its_like(
    name: str, header: int, shown: str
) -> None:
    lines = upright_name(Content(name), here=False, shape=Shape(8, 2, header, 4, 4))

    assert len(lines) == header
    assert "".join(line.plain.strip() for line in lines) == shown
