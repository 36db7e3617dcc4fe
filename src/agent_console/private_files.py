"""Which files may hold a secret: those that nobody but their owner can read or change."""

import os
import stat
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def open_to_others(path: Path, mode: int) -> bool:
    """systemd lets the user of a service read its credentials by an ACL, which the mode shows as a group that may
    read."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if folder and path.resolve().parent == Path(folder).resolve():
        return bool(mode & _OTHERS & ~stat.S_IRGRP)
    return bool(mode & _OTHERS)
