"""What was not sent is told to be not sent: nobody has to look whether it was done."""

import pytest

from agent_console.domain.errors import (
    CannotConnect,
    ConsoleError,
    DatabaseUnavailable,
    Invalid,
    TimedOut,
    Unauthorized,
)
from agent_console.domain.records import Nothing
from agent_console.repository.operations import ME
from agent_console.tui import batches
from agent_console.tui.dialogs.batch_dialog import NOT_KNOWN, NOT_SENT, Phase
from agent_console.tui.link import LinkState, NotSent, is_unsure
from tests.support.fleet import Fleet
from tests.tui_console.stage import ADMIN, console, directly, list_of, loaded, press, row_ids, shown_text, until
from tests.tui_console.test_many import HELD_UP, WAITING, begin_three_batches, held, until_phase


@pytest.mark.usefixtures("nobody_looks_again")
async def test_a_batch_that_was_not_sent_is_told_to_be_left_untouched(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_MOST", 3)
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3", "f", "asterisk")
        with held(fleet, row_ids(list_of(app))[4]) as somebody:
            dialog = await begin_three_batches(app, pilot)
            await until(lambda: fleet.one(HELD_UP) == 1, "the second batch is under way")
            # While the second batch is under way, somebody else hears that this person may ask no more.
            fleet.execute("update users set is_active = false where email = %s", ADMIN)
            with pytest.raises(Unauthorized):
                await app.link.call(ME, Nothing())
            assert app.link.status.state is LinkState.LOST
            somebody.rollback()

        await until_phase(dialog, Phase.STOPPED)
        await pilot.pause()
        shown = shown_text(app)
        assert "6 done, 0 refused, 2 left" in shown
        assert NOT_SENT in shown
        assert NOT_KNOWN not in shown
        assert fleet.one(WAITING) == 2


@pytest.mark.parametrize(
    ("error", "unsure"),
    [(NotSent, False), (CannotConnect, True), (DatabaseUnavailable, True), (TimedOut, True), (Invalid, False)],
)
def test_only_what_was_sent_may_have_been_done(error: type[ConsoleError], unsure: bool) -> None:
    assert is_unsure(error("x")) is unsure
