"""The generated pages say what the program is now."""

from agent_console.repository.operations import OPERATIONS
from tests.docs import api_reference, rule_list

AGAIN = "run: python -m tests.docs.write"


def test_the_list_of_operations_is_as_they_are_declared() -> None:
    page = api_reference.PAGE.read_text(encoding="utf-8")

    assert page == api_reference.api_reference(), AGAIN
    assert page.count("\n### ") == len(OPERATIONS)


def test_every_rule_names_tests_that_show_it() -> None:
    """A page that leaves out a newer test is not wrong; one that names a test in vain, or none, is."""
    listed, shown = rule_list.listed(rule_list.PAGE.read_text(encoding="utf-8")), rule_list.shown_by_tests()

    assert not shown.keys() - listed.keys(), "a test names a rule that the list does not have"
    assert [rule for rule, tests in listed.items() if not tests <= shown.get(rule, set())] == [], AGAIN
    assert [rule for rule, tests in listed.items() if not tests and rule in shown] == [], AGAIN
