"""Databases on loan: each test gets one that is as its template is, and as few as possible are made for that."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.clusters import TemplateDatabase


class Lending:
    """A database that nobody wrote to while it was lent is as good as new, and goes to the next test."""

    def __init__(self, databases: TemplateDatabase) -> None:
        self._databases = databases
        self._numbers = itertools.count(1)
        self._untouched: dict[str, str] = {}

    @contextmanager
    def lent(self, template: str) -> Iterator[str]:
        """The name of a database that has just what the template has."""
        name = self._untouched.pop(template, None) or self._made(template)
        before = self._databases.transactions()
        yield name
        self._databases.end_sessions(name)
        if self._databases.transactions() == before:
            self._untouched[template] = name
        else:
            self._databases.drop(name)

    def _made(self, template: str) -> str:
        name = f"test_{next(self._numbers)}"
        self._databases.clone(template, name)
        return name
