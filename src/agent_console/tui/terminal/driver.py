"""Textual's driver, taking the terminal over from the skeleton and giving it back whole."""

from time import sleep

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

from agent_console.tui.terminal import skeleton
from agent_console.tui.terminal.hang_up import EndOfInput

ENTER_ALTERNATE_SCREEN = "\x1b[?1049h"
ERASE_SCREEN = "\x1b[2J"
MOUSE_PIXELS_OFF = "\x1b[?1016l"
HANDED_OVER_SECONDS = 0.0002
"""As long as the thread that writes needs to be under way; sixty frames a second lose a hundredth to it."""
HANDED_OVER_TRIES = 40
"""On a busy machine it needs longer; a line that takes nothing any more is not waited for."""


class ConsoleDriver(LinuxDriver):
    """Knows whether it holds the terminal: from the first mode it sets until the last byte that unsets it."""

    holds_terminal = False
    _has_stopped = False

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self.exit_event = self._end_of_input = EndOfInput(self.fileno)

    def write(self, data: str) -> None:
        if data == ENTER_ALTERNATE_SCREEN:
            self.holds_terminal = True
            self._has_stopped = False
            # Entering once more would blank the skeleton before there is anything to replace it.
            if skeleton.hand_over():
                return
        super().write(data)

    def flush(self) -> None:
        """A frame is complete: the thread that writes has its turn now.

        It needs the interpreter for that, and whoever holds the interpreter is asked for it after 5 ms only: what
        follows a key, such as the detail of the row the cursor went to, would be worked out first.
        """
        super().flush()
        for _ in range(HANDED_OVER_TRIES):
            sleep(HANDED_OVER_SECONDS)
            if self._writer_thread is None or not self._writer_thread._queue.qsize():
                # Taken: with the interpreter in its hands it goes on until the terminal has it.
                return

    def stop_application_mode(self) -> None:
        if self._mouse_pixels:
            self.write(MOUSE_PIXELS_OFF)
        # tmux gives back the size the screen had before; what is larger by now would keep our last frame.
        self.write(ERASE_SCREEN)
        super().stop_application_mode()
        self._has_stopped = True

    def close(self) -> None:
        super().close()
        self._end_of_input.forget()
        self.holds_terminal = self.holds_terminal and not self._has_stopped
