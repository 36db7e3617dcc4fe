"""A draft that is put away is let go."""

from textual.app import App, ComposeResult

from agent_console.tui.widgets.draft_box import DraftText


class OneDraft(App[None]):
    def compose(self) -> ComposeResult:
        yield DraftText()


def watching_the_theme(app: App[None]) -> list[tuple[object, object]]:
    found: list[tuple[object, object]] = getattr(app, "__watchers", {}).get("theme", [])
    return found


async def test_the_app_keeps_nothing_of_a_draft_that_is_gone() -> None:
    app = OneDraft()
    async with app.run_test() as pilot:
        draft = app.query_one(DraftText)
        watched = [who for who, _ in watching_the_theme(app)]
        await draft.remove()
        await pilot.pause()

        assert draft in watched
        assert draft not in [who for who, _ in watching_the_theme(app)]
