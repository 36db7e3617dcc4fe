"""What is kept of a crash: the way to the error, never the values on it."""

import os
import platform
import re
import sys
import traceback
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from textual.worker import WorkerFailed

from agent_console.domain.safe_text import safe_block

_SECRETS = (
    re.compile(r"(?P<kept>://[^:/@\s]*:)[^@\s]+(?=@)"),
    re.compile(
        r"(?i)(?P<kept>\b\w*(?:password|passwd|secret|token|api_?key|authorization)\w*[\"']?\s*[=:]\s*[\"']?)[^\s\"',;)]+"
    ),
)


def cause_of(error: BaseException) -> BaseException:
    """The error itself, where Textual only tells that a worker failed."""
    return error.error if isinstance(error, WorkerFailed) else error


def crash_report(error: BaseException, notes: list[str]) -> str:
    """The traceback without local variables, and without what looks like a secret in its messages. Somebody will
    read it in a terminal, where words of others that are in it must do nothing."""
    told = traceback.TracebackException.from_exception(error, capture_locals=False)
    report = without_secrets(
        f"agent-console {version('agent-console')}, textual {version('textual')}, "
        f"Python {sys.version.split()[0]}, {platform.platform()}\n"
        f"{datetime.now(UTC).isoformat(timespec='seconds')}\n\n"
        f"{''.join(told.format())}" + "".join(f"\n{note}" for note in notes)
    )
    return "\n".join(safe_block(report))


def without_secrets(text: str) -> str:
    for secret in _SECRETS:
        text = secret.sub(r"\g<kept>***", text)
    return text


def keep_crash_report(error: BaseException, notes: list[str], state_folder: Path) -> Path:
    """Write the report to a file of its own that only its owner can read."""
    now = datetime.now(UTC)
    state_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = state_folder / f"crash-{now:%Y%m%dT%H%M%SZ}-{os.getpid()}.txt"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(crash_report(error, notes))
    return path
