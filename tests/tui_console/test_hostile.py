"""Agents that write to harm the reader: nothing of it reaches the screen as anything but visible text."""

from tests.attacks.hostile_strings import HOSTILE, dangers
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly, loaded, press, shown_text


def storable(text: str) -> str:
    """PostgreSQL itself refuses NUL and lone surrogates."""
    return text.encode("utf-8", "ignore").decode().replace("\x00", "")


async def test_every_hostile_word_is_shown_as_harmless_text(fleet: Fleet) -> None:
    everything = [storable(text)[:60] for text in HOSTILE.values()]
    fleet.add_jobs(len(everything), status="failed", since="2100-01-01")
    jobs = fleet.execute("select id from jobs where type = 'bulk' order by id desc")
    for (job_id,), text in zip(jobs, everything, strict=True):
        fleet.execute("update jobs set error_message = %s, result_summary = %s where id = %s", text, text, job_id)
    app = console(directly(fleet.working))
    async with app.run_test(size=(200, 60)) as pilot:
        await loaded(pilot)
        await press(pilot, "3")
        seen = shown_text(app)
        for key in ("down", "down", "down", "end"):
            await press(pilot, key)
            seen += shown_text(app)

        assert "[@click=app.quit]" in seen
        assert r"\x1b]52;c" in seen
        assert dangers(seen.replace("\n", "")) == []
