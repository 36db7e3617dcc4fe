"""A home of its own for every test: nothing configured, nothing of the machine's environment."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith(("AGENT_CONSOLE_", "XDG_")) or name == "NO_COLOR":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def config_file(home: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = home / ".config" / "agent-console" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def secret_file(home: Path) -> Callable[[str, int], Path]:
    def write(text: str, mode: int) -> Path:
        path = home / "prod.secret"
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    return write
