"""What one may do changes while one looks: keys, menus and the header follow, and nobody asks what is refused."""

from dataclasses import dataclass

import pytest

from agent_console.domain.errors import RateLimited
from agent_console.repository.operations import POOL_STATUS, Answered, Asked, Operation
from agent_console.repository.port import Topic
from agent_console.repository.postgres.repository import open_direct
from agent_console.tui.app import ConsoleApp
from agent_console.tui.dialogs.list_menu import ListMenu
from agent_console.tui.wanted import Refused
from tests.support.fleet import Fleet
from tests.tui_console.route_stage import Overheard
from tests.tui_console.stage import (
    ADMIN,
    announce,
    console,
    directly,
    header_text,
    loaded,
    shown_text,
    until,
    until_on,
)

pytestmark = pytest.mark.usefixtures("nobody_looks_again")

VIEWER = "vera@example.com"


@dataclass
class Limited(Overheard):
    """Tells nothing of the pool while it refuses to."""

    refuses: bool = False

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        answer = await super().call(operation, request)
        if self.refuses and operation.name == POOL_STATUS.name:
            raise RateLimited("Too much, too fast.")
        return answer

    @property
    def of_the_pool(self) -> list[str]:
        return [name for name, _ in self.asked if name == POOL_STATUS.name]


def live_keys(app: ConsoleApp) -> set[str | None]:
    return {active.binding.id for active in app.screen.active_bindings.values()}


def make(fleet: Fleet, email: str, role: str) -> None:
    fleet.execute("update users set role = %s where email = %s", role, email)
    announce(fleet, Topic.USERS)


async def test_a_role_that_is_taken_or_given_is_seen_at_once(fleet: Fleet) -> None:
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(100, 24)) as pilot:
        await loaded(pilot)
        assert "(admin)" in header_text(app)
        await until(lambda: {"list.act", "list.new"} <= live_keys(app), "the keys of an administrator")

        make(fleet, ADMIN, "viewer")
        await until(lambda: "(viewer)" in header_text(app), "a viewer now")
        await until(lambda: not {"list.act", "list.new"} & live_keys(app), "without keys that change anything")

        make(fleet, ADMIN, "operator")
        await until(lambda: "(operator)" in header_text(app), "an operator now")
        await until(lambda: "list.act" in live_keys(app), "with keys again")


async def test_a_list_one_may_not_read_is_on_no_menu(fleet: Fleet) -> None:
    app = console(directly(fleet.working, user=VIEWER))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        await pilot.press("7")
        await until_on(app, ListMenu)
        assert "Operator tokens" in shown_text(app)
        assert not {"Registration tokens", "Worker tokens"} & set(shown_text(app).split("  "))
        await pilot.press("escape")
        await until(lambda: len(app.screen_stack) == 1, "the list again")

        named = {command.name for command in app._commands()}
        assert "operator-tokens" in named
        assert not {"registration-tokens", "worker-tokens"} & named


async def test_what_the_header_is_refused_is_not_asked_for_again_at_once(fleet: Fleet) -> None:
    async with open_direct(fleet.working, team="example", user=ADMIN) as repository:
        side = Limited(repository)
        app = console(lambda say: side)
        async with app.run_test(size=(80, 24)) as pilot:
            await loaded(pilot)
            side.refuses = True
            side.asked.clear()
            announce(fleet, Topic.AGENTS)
            await until(lambda: bool(side.of_the_pool), "a question")

            for _ in range(10):
                app._step()
                await pilot.pause()

            assert len(side.of_the_pool) == 1


async def test_the_same_refusal_is_on_the_screen_once(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConsoleApp, "NOTIFICATION_TIMEOUT", 3600.0)
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        for words in ("One at a time.", "One at a time.", "Not now.", "One at a time."):
            app.post_message(Refused(RateLimited(words)))
        await until(lambda: any("Not now" in note.message for note in app._notifications), "the last refusal")
        await pilot.pause()

        assert sorted(note.message for note in app._notifications) == ["Not now.", "One at a time."]
