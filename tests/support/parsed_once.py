"""Stylesheets are parsed once for a whole run, as they are in a program, which has one console for its whole life.

Textual keeps the rules it parsed with each app, and a test has an app of its own.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

Parsed: TypeAlias = LRUCache[tuple[object, ...], list[RuleSet]]
SHEETS = 1_000
PARSED: dict[tuple[tuple[str, str], ...], Parsed] = {}
"""By the colours: they are part of what a rule says."""


def parse_once() -> None:
    """For every app that is made from here on."""
    begin: Callable[..., None] = vars(Stylesheet)["__init__"]
    recolour: Callable[..., None] = vars(Stylesheet)["set_variables"]

    def beginning(sheet: Stylesheet, *, variables: dict[str, str] | None = None) -> None:
        begin(sheet, variables=variables)
        sheet._parse_cache = _parsed(variables or {})

    def recolouring(sheet: Stylesheet, variables: dict[str, str]) -> None:
        # It empties what it has, and others need that.
        sheet._parse_cache = LRUCache(SHEETS)
        recolour(sheet, variables)
        sheet._parse_cache = _parsed(variables)

    type.__setattr__(Stylesheet, "__init__", beginning)
    type.__setattr__(Stylesheet, "set_variables", recolouring)


def _parsed(variables: Mapping[str, str]) -> Parsed:
    return PARSED.setdefault(tuple(variables.items()), LRUCache(SHEETS))
