"""A cell of an export is plain text for every spreadsheet."""

import pytest

from agent_console.domain.audit_export import harmless_cell


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\\u0009=1"),
        ("\r=1", "'\\u000d=1"),
        ("\n=1", "'\\u000a=1"),
        ("  =1", "'  =1"),
        ("\uff1d1", "'\uff1d1"),
        ("\x1b[2J", "\\u001b[2J"),
        ("a=1", "a=1"),
        ("", ""),
        (None, ""),
        (-5, "-5"),
        (True, "true"),
        ({"b": 1, "a": "=x"}, '{"a": "=x", "b": 1}'),
    ],
)
def test_a_cell_is_never_a_formula(value: object, cell: str) -> None:
    assert harmless_cell(value) == cell
