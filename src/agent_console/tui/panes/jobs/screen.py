"""One job, whole: with its live output, which can be narrowed to what is bad, held still and copied."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from agent_console.tui.copying import copy_and_tell
from agent_console.tui.panes.detail_part import PartSoFar
from agent_console.tui.panes.detail_screen import DetailScreen
from agent_console.tui.panes.jobs.story import TITLE, StoryPart, StorySoFar, story_text


class JobScreen(DetailScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "next_level", "Level", id="job.level"),
        Binding("p", "pause", "Pause", id="job.pause"),
        Binding("c", "copy_story", "Copy the output", show=False, id="job.copy"),
    ]

    @property
    def story(self) -> StoryPart:
        part = self._parts[TITLE].part
        if not isinstance(part, StoryPart):
            raise TypeError(f"A job is told by a StoryPart, not by {type(part).__name__}.")
        return part

    @property
    def told(self) -> StorySoFar:
        answer = self._parts[TITLE].answer
        return answer if isinstance(answer, StorySoFar) else StorySoFar()

    def words_now(self, action: str) -> str | None:
        return "Follow" if action == "pause" and not self.story.following else None

    def action_next_level(self) -> None:
        """Other lines, so nothing of them is known yet."""
        self.workers.cancel_group(self, TITLE)
        self._parts[TITLE] = PartSoFar(self.story.worse())
        self._look_again()

    def action_pause(self) -> None:
        """What is shown stays as it is, and what is new is counted; followed again, it is shown."""
        self.workers.cancel_group(self, TITLE)
        so_far, part = self._parts[TITLE], self.story.paused()
        self._parts[TITLE] = PartSoFar(part, so_far.known, so_far.answer, so_far.problem)
        self._look_again()
        self.refresh_bindings()

    def _look_again(self) -> None:
        self._dirty_parts.add(TITLE)
        self.tick()
        if self.around.up:
            self.step()

    def action_copy_story(self) -> None:
        copy_and_tell(self.app, story_text(self.told), "output")
