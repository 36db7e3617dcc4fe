"""What a doctor can see without asking anybody: the terminal, the program, the configuration, the disk."""

import curses
import locale
import os
import platform
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from agent_console import __version__
from agent_console.config import Direct, Embedded, Profile, Remote, Settings, config_folder, load
from agent_console.config.glance import glance
from agent_console.domain.doctor_facts import (
    DIRECT,
    EMBEDDED,
    SERVER,
    ConfigFacts,
    DiskFacts,
    LocalFacts,
    Package,
    ProfileFacts,
    TerminalFacts,
)
from agent_console.domain.errors import ConsoleError

ALL_COLOURS = 1 << 24
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)")


def terminal_size() -> os.terminal_size:
    """Of the terminal itself, if there is one: what COLUMNS says may be long over."""
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1)
    except (OSError, ValueError):
        return shutil.get_terminal_size()


def local_facts(options: Mapping[str, object]) -> LocalFacts:
    """Nothing here is ever refused: what can't be found out is itself a finding."""
    try:
        settings, problem, hint = load(options), "", ""
    except ConsoleError as error:
        settings, problem, hint = None, error.message, error.hint
    return LocalFacts(
        terminal=_terminal(options),
        python=platform.python_version(),
        program_version=__version__,
        packages=tuple(_packages()),
        config=_config(settings, options, problem, hint),
        profile=None if settings is None else _profile(settings.profile),
        disk=None if settings is None else _disk(settings.profile),
    )


def _terminal(options: Mapping[str, object]) -> TerminalFacts:
    looks = glance(options)
    size = terminal_size()
    return TerminalFacts(
        is_terminal=sys.__stdout__ is not None and sys.__stdout__.isatty(),
        term=os.environ.get("TERM", ""),
        colours=_colours(),
        width=size.columns,
        height=size.lines,
        encoding=locale.getpreferredencoding(False),
        mouse=looks.mouse,
        theme=looks.theme,
        within="tmux" if os.environ.get("TMUX") else "screen" if os.environ.get("STY") else "",
        over_ssh=bool(os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY")),
        slow=looks.slow,
    )


def _colours() -> int:
    """What the terminal says of itself; some say it in COLORTERM only."""
    if os.environ.get("COLORTERM", "").lower() in {"truecolor", "24bit"}:
        return ALL_COLOURS
    # Nothing is written there; but what stands for the output of a console is no file.
    nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        curses.setupterm(fd=nothing)
        return max(0, curses.tigetnum("colors"))
    except curses.error:
        return 0
    finally:
        os.close(nothing)


def _packages() -> Iterator[Package]:
    """What this program says it needs without any extra, and what is there of it."""
    for requirement in metadata.requires("agent-console") or ():
        found = _REQUIREMENT.match(requirement)
        if found is None or "extra ==" in requirement:
            continue
        name, wanted = found[1], found[2].strip()
        try:
            installed: str | None = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed = None
        yield Package(name=name, installed=installed, wanted=wanted)


def _config(settings: Settings | None, options: Mapping[str, object], problem: str, hint: str) -> ConfigFacts:
    file = settings.config_file if settings is not None else _config_file(options)
    try:
        mode: int | None = stat.S_IMODE(file.stat().st_mode)
    except OSError:
        mode = None
    return ConfigFacts(
        file=str(file),
        exists=mode is not None,
        mode=mode,
        problem=problem,
        hint=hint,
        keymap_problems=() if settings is None else _keymap_problems(settings),
    )


def _config_file(options: Mapping[str, object]) -> Path:
    chosen = options.get("config") or os.environ.get("AGENT_CONSOLE_CONFIG")
    return Path(str(chosen)) if chosen else config_folder() / "config.toml"


def _keymap_problems(settings: Settings) -> tuple[str, ...]:
    from agent_console.cli.keys_file import keymap_of

    try:
        keymap = keymap_of(settings)
    except ConsoleError as error:
        return (str(error),)
    if not keymap:
        return ()
    from agent_console.tui.keymap import keymap_problems

    return keymap_problems(keymap)


def kind_of(profile: Profile) -> str:
    match profile.target:
        case Remote():
            return SERVER
        case Embedded():
            return EMBEDDED
        case Direct():
            return DIRECT


def place_of(profile: Profile) -> str:
    """Where it leads, in words that hold no secret."""
    match profile.target:
        case Remote(url):
            return url
        case Embedded(folder):
            return str(folder)
        case Direct(dsn):
            from agent_console.config.dsn import address

            return f"PostgreSQL at {address(dsn.get_secret_value())}"


def _profile(profile: Profile) -> ProfileFacts:
    source = profile.token_source if isinstance(profile.target, Remote) else profile.password_source
    problem = ""
    try:
        secret = profile.token() if isinstance(profile.target, Remote) else profile.password()
        if secret is None and isinstance(profile.target, Remote):
            problem = "There is no token for it."
    except ConsoleError as error:
        problem = str(error)
    return ProfileFacts(
        name=profile.label,
        kind=kind_of(profile),
        leads_to=place_of(profile),
        credential="" if source is None else f"{source} (there)",
        credential_problem=problem,
        production=profile.production,
        read_only=profile.read_only,
    )


def _disk(profile: Profile) -> DiskFacts | None:
    """Only where the data is on this machine: the folder, or the nearest above it that exists."""
    if not isinstance(profile.target, Embedded):
        return None
    folder = profile.target.data_folder
    try:
        there = next((place for place in (folder, *folder.parents) if place.exists()), Path("/"))
        usage = shutil.disk_usage(there)
    except OSError:
        return None
    return DiskFacts(folder=str(folder), free_bytes=usage.free, total_bytes=usage.total)
