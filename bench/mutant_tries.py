"""A plugin of the tests that tries mutants, each in a copy of the process, up to the first test that fails.

The tests are collected and PostgreSQL is started once. Then a copy of the process runs all of them, to see that
they are green, how long each takes, and which functions it calls; after that only tests that call a function are
asked about its mutants. A mutant of a function in SQL is put into the databases that those of the tests are cloned
from. A test that could not even begin has noticed nothing.
"""

import importlib
import json
import os
import random
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import psycopg
import pytest
from _pytest.runner import runtestprotocol
from bench.mutant_python import Mutant, become, python_mutants
from bench.mutant_sql import functions_in, sql_changes
from tests.conftest import EMPTY_TEMPLATE, FLEET_TEMPLATE, STORY_TEMPLATE
from tests.database.conftest import NEWEST
from tests.support import one_way
from tests.support.lending import Lending

WANTED = "MUTANTS_WANTED"
"""A JSON object: file, places (all when empty), most, seed, known (not tried, or with only_known nothing else),
report (where it is told)."""
ONCE, SECONDS = 60.0, 3.0
"""A mutant with which a test takes three times as long as before, and a minute more, has gone astray."""
FREE = 1_000_000
LENDING: list[Lending] = []

# Both ways to the repository share what is changed here, and this one is quicker.
one_way.chosen = lambda name, ways: ways[0]


class Tried:
    """Everything that is known while the mutants of one file are tried."""

    def __init__(self, session: pytest.Session) -> None:
        self.session = session
        # A copy that started a server of another version would leave it behind.
        session.items[:] = [item for item in session.items if _on_the_usual_server(item)]
        self.wanted = json.loads(os.environ[WANTED])
        self.path = Path(self.wanted["file"])
        self.source = self.path.read_text(encoding="utf-8")
        self.lending: Lending | None = None
        self.databases: set[str] = set()
        self.seconds: dict[str, float] = {}
        self.called: dict[str, list[str]] = {}
        self.noticed: dict[str, list[str]] = {}
        self.outcomes: list[dict[str, object]] = []
        self.numbers = count(1)

    @property
    def in_sql(self) -> bool:
        return self.path.suffix == ".sql"

    def module(self) -> ModuleType:
        return importlib.import_module(".".join(self.path.with_suffix("").parts[1:]))

    def mutants(self) -> list[Mutant]:
        made = (
            sql_mutants(str(self.path), self.source)
            if self.in_sql
            else python_mutants(str(self.path), self.source)
        )
        places = self.wanted["places"]
        return [one for one in _told_apart(made) if not places or one.place in places]

    def chosen(self) -> list[Mutant]:
        """A sample that is the same every time."""
        known = set(self.wanted["known"])
        mutants = [one for one in self.mutants() if (one.name in known) is self.wanted["only_known"]]
        if unknown := known - {one.name for one in self.mutants()}:
            self.outcomes.extend({"mutant": name, "outcome": "no such mutant"} for name in sorted(unknown))
        chosen = random.Random(self.wanted["seed"]).sample(mutants, min(self.wanted["most"], len(mutants)))
        return [one for one in mutants if one in set(chosen)]

    def items_for(self, mutant: Mutant) -> list[pytest.Item]:
        """First those that noticed another mutant of the same place, then quick ones. Who uses a statement is not
        told by calls: all who come by its file are asked."""
        asked = self.session.items
        if not self.in_sql:
            is_statement = mutant.place.isupper()
            asked = [item for item in asked if is_statement or mutant.place in self.called[item.nodeid]]
            asked = [item for item in asked if self.called[item.nodeid]]
        noticed = self.noticed.get(mutant.place, [])
        return sorted(asked, key=lambda item: (item.nodeid not in noticed, self.seconds[item.nodeid]))


def _on_the_usual_server(item: pytest.Item) -> bool:
    asked = getattr(item, "callspec", None)
    return asked is None or asked.params.get("server", NEWEST) == NEWEST


def sql_mutants(file: str, text: str) -> Iterator[Mutant]:
    for place, function in functions_in(text):
        for number, (was, becomes, _) in enumerate(sql_changes(function)):
            yield Mutant(file, place, number, was, becomes)


def _told_apart(mutants: Iterator[Mutant]) -> Iterator[Mutant]:
    """Two changes that read alike are told apart by their place in the order."""
    seen: dict[str, int] = {}
    for one in mutants:
        times = seen[one.name] = seen.get(one.name, 0) + 1
        if times == 1:
            yield one
        else:
            yield Mutant(one.file, one.place, one.number, one.was, f"{one.becomes} ({times})")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    tried = Tried(session)
    _begin(tried)
    try:
        if _all_green(tried):
            for mutant in tried.chosen():
                tried.outcomes.append(_outcome(tried, mutant))
    finally:
        Path(tried.wanted["report"]).write_text(json.dumps(tried.outcomes), encoding="utf-8")
    return True


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: "pytest.FixtureDef[Any]") -> Generator[None, Any, Any]:
    made = yield
    if isinstance(made, Lending):
        LENDING.append(made)
    return made


def _begin(tried: Tried) -> None:
    """What lives as long as the run is started before the first copy is made: tests that need it do that."""
    for needed in ("lending", "story"):
        item = next((item for item in tried.session.items if needed in getattr(item, "fixturenames", ())), None)
        if item is not None:
            runtestprotocol(item, log=False, nextitem=_nobody(tried))
    if LENDING:
        tried.lending = LENDING[0]
        tried.databases = _databases(tried.lending)
        if tried.in_sql:
            for place in {mutant.place for mutant in tried.mutants()}:
                _replace(tried.lending, dict(functions_in(tried.source))[place])
    assert threading.active_count() == 1, f"threads do not come along: {threading.enumerate()}"


def _nobody(tried: Tried) -> Any:
    """As the next test: everything is put away but what lives as long as the run."""
    return tried.session


def _run(tried: Tried, items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, str | None, bool]]:
    """Each test, how it failed, and whether it could begin at all."""
    for item, following in zip(items, [*items[1:], _nobody(tried)], strict=False):
        wrong, began = None, True
        if tried.seconds:
            # Whoever has gone astray does not listen: the copy of the process is ended.
            signal.setitimer(signal.ITIMER_REAL, ONCE + SECONDS * tried.seconds[item.nodeid])
        for report in runtestprotocol(item, log=False, nextitem=following):
            if report.failed and wrong is None:
                said = str(getattr(getattr(report.longrepr, "reprcrash", None), "message", report.longrepr))
                wrong = f"{item.nodeid.removeprefix('tests/')}: {said.splitlines()[0] if said else report.when}"
                began = report.when != "setup"
        yield item, wrong, began


def _in_a_copy(tried: Tried, work: Callable[[], object], seconds: float) -> Any:
    """What the copy of this process says; None when it never did."""
    listening, telling = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(listening)
        try:
            _on_its_own(tried)
            said = work()
        except BaseException as error:
            said = {"error": repr(error)}
        with suppress(BaseException):
            tried.session._setupstate.teardown_exact(_nobody(tried))
        os.write(telling, json.dumps(said).encode())
        os._exit(0)
    os.close(telling)
    said = None
    try:
        with os.fdopen(listening, "rb") as report:
            said = _read(report.fileno(), seconds)
    finally:
        if said is None:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if tried.lending is not None:
        for left_over in _databases(tried.lending) - tried.databases:
            tried.lending._databases.drop(left_over)
    return said


def _on_its_own(tried: Tried) -> None:
    """Its own connection, and databases whose names nobody else gives."""
    if tried.lending is not None:
        databases = tried.lending._databases
        administration = psycopg.connect(databases.cluster.dsn(), autocommit=True)
        # The same object for all who make databases, whoever holds it.
        object.__setattr__(databases, "administration", administration)
        tried.lending._untouched = {}
        tried.lending._numbers = count(os.getpid() * FREE)


def _read(file: int, seconds: float) -> Any:
    deadline, heard = time.monotonic() + seconds, b""
    while True:
        ready, _, _ = select.select([file], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        if not (part := os.read(file, 65536)):
            return json.loads(heard) if heard else None
        heard += part


def _databases(lending: Lending) -> set[str]:
    rows = lending._databases.administration.execute("select datname from pg_database").fetchall()
    return {name for (name,) in rows}


def _all_green(tried: Tried) -> bool:
    def look() -> dict[str, object]:
        seconds: dict[str, float] = {}
        called: dict[str, list[str]] = {}
        path, names, wrong, began = str(Path.cwd() / tried.path), set[str](), None, time.monotonic()

        def watch(frame: FrameType, event: str, _: object) -> None:
            if event == "call" and frame.f_code.co_filename == path:
                names.add(frame.f_code.co_qualname.partition(".<locals>")[0])

        threading.setprofile(watch)
        sys.setprofile(watch)
        for item, failed, _ in _run(tried, tried.session.items):
            wrong = wrong or failed
            seconds[item.nodeid], called[item.nodeid] = time.monotonic() - began, sorted(names)
            names.clear()
            began = time.monotonic()
        sys.setprofile(None)
        return {"seconds": seconds, "called": called, "wrong": wrong}

    seen = _in_a_copy(tried, look, 1200.0) or {"wrong": "the tests took too long", "seconds": {}, "called": {}}
    if seen.get("error") or seen["wrong"]:
        tried.outcomes.append(
            {"mutant": "", "outcome": "not green before", "by": seen.get("error") or seen["wrong"]}
        )
        return False
    tried.seconds, tried.called = seen["seconds"], seen["called"]
    print(f"{len(tried.seconds)} tests green in {sum(tried.seconds.values()):.0f} s", flush=True)
    return True


def _outcome(tried: Tried, mutant: Mutant) -> dict[str, object]:
    items = tried.items_for(mutant)

    def ask() -> dict[str, object]:
        if not tried.in_sql:
            become(mutant, tried.module(), tried.source)
        not_begun = ""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for item, wrong, began in _run(tried, items):
            if wrong is not None and began:
                return {"outcome": "killed", "by": wrong, "test": item.nodeid}
            not_begun = not_begun or wrong or ""
        return {"outcome": "survived", "by": not_begun or f"{len(items)} tests"}

    began = time.monotonic()
    at_most = ONCE + SECONDS * sum(tried.seconds[item.nodeid] for item in items)
    try:
        with _in_the_databases(tried, mutant):
            said = _in_a_copy(tried, ask, at_most) or {"outcome": "killed", "by": "gone astray"}
    except psycopg.Error as error:
        said = {"outcome": "no function", "by": str(error).splitlines()[0]}
    if "error" in said:
        # Code that calls super() can't stand in for code that does not.
        said = {"outcome": "no function" if "free vars" in said["error"] else "not made", "by": said["error"]}
    tried.noticed.setdefault(mutant.place, []).append(said.get("test", ""))
    told = {"mutant": mutant.name, **said, "seconds": round(time.monotonic() - began, 1)}
    print(f"{told['outcome']:<9} {told['seconds']:>5} s  {mutant.name}  [{told['by']}]"[:400], flush=True)
    return told


@contextmanager
def _in_the_databases(tried: Tried, mutant: Mutant) -> Iterator[None]:
    if not tried.in_sql:
        yield
        return
    assert tried.lending is not None, "a mutant in SQL needs tests with a database"
    function = dict(functions_in(tried.source))[mutant.place]
    changed = [text for _, _, text in sql_changes(function)][mutant.number]
    try:
        _replace(tried.lending, changed)
        yield
    finally:
        _replace(tried.lending, function)


def _replace(lending: Lending, function: str) -> None:
    cluster = lending._databases.cluster
    for template in _templates(lending):
        with psycopg.connect(cluster.dsn(template), autocommit=True) as connection:
            connection.execute(function.replace("create function", "create or replace function", 1).encode())
    for name in lending._untouched.values():
        lending._databases.drop(name)
    lending._untouched.clear()


def _templates(lending: Lending) -> Sequence[str]:
    return [name for name in (EMPTY_TEMPLATE, FLEET_TEMPLATE, STORY_TEMPLATE) if name in _databases(lending)]


with suppress(AttributeError):
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
