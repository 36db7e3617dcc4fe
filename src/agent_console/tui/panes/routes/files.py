"""Policy files on disk: written for their owner alone and never over another, read no further than allowed."""

from datetime import datetime
from pathlib import Path

from agent_console.domain.errors import Invalid
from agent_console.domain.policy_plans import POLICY_FILE_BYTES, policy_text
from agent_console.tui.new_file import FOLDER_SET_BY, NewFile, unused_name

NAME_ANOTHER = "Nothing was changed. Name a policy file as E writes it."
ELSEWHERE = f"Nothing was kept. {FOLDER_SET_BY} can name another folder."


def write_policy(folder: Path, text: str, at: datetime) -> Path:
    """A new file in the folder; the answer says which."""
    try:
        file = NewFile.begin(unused_name(folder, f"policy-{at:%Y%m%dT%H%M%SZ}", "yaml"))
    except OSError as error:
        raise Invalid(
            f"{folder.absolute()} can't be written to: {error.strerror or error}.", hint=ELSEWHERE
        ) from error
    try:
        file.write(text)
        file.keep()
    except OSError as error:
        file.drop()
        raise Invalid(
            f"{file.path.absolute()} could not be written: {error.strerror or error}.", hint=ELSEWHERE
        ) from error
    return file.path.absolute()


def read_policy_file(path: Path) -> str:
    try:
        # A pipe or a terminal would keep the reader waiting for ever.
        if path.exists() and not path.is_file():
            raise Invalid(f"{path} is no file.", hint=NAME_ANOTHER)
        with path.open("rb") as file:
            content = file.read(POLICY_FILE_BYTES + 1)
    except OSError as error:
        raise Invalid(f"{path} can't be read: {error.strerror}.", hint=NAME_ANOTHER) from error
    except ValueError as error:
        raise Invalid("That is no name of a file.", hint=NAME_ANOTHER) from error
    return policy_text(content, str(path), NAME_ANOTHER)
