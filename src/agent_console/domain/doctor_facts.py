"""What a doctor looks at: the terminal, the program, the configuration, and whoever answers at the other end.

None of it holds a secret: of a credential only the place where it is kept is told.
"""

from agent_console.domain.audit_trail import SealStatus
from agent_console.domain.database_state import DatabaseState
from agent_console.domain.duties import DutyState
from agent_console.domain.identity import Myself
from agent_console.domain.records import Record

EMBEDDED, DIRECT, SERVER = "embedded", "direct", "server"


class TerminalFacts(Record):
    is_terminal: bool
    term: str
    colours: int = 0
    """How many it says it has; 0 is none, 16,777,216 is all."""
    width: int
    height: int
    encoding: str
    mouse: bool = True
    theme: str = "dark"
    within: str = ""
    """tmux or screen, when it runs inside of one."""
    over_ssh: bool = False
    slow: bool = False


class Package(Record):
    """`wanted` is what this program says it needs, such as ==8.2.8; empty when anything will do."""

    name: str
    installed: str | None
    wanted: str = ""


class ConfigFacts(Record):
    file: str
    exists: bool
    mode: int | None = None
    problem: str = ""
    hint: str = ""
    keymap_problems: tuple[str, ...] = ()


class ProfileFacts(Record):
    name: str
    kind: str
    """One of EMBEDDED, DIRECT and SERVER."""
    leads_to: str
    credential: str = ""
    """Where the token or the password is kept."""
    credential_problem: str = ""
    production: bool = False
    read_only: bool = False


class DiskFacts(Record):
    folder: str
    free_bytes: int
    total_bytes: int


class LocalFacts(Record):
    terminal: TerminalFacts
    python: str
    program_version: str
    packages: tuple[Package, ...] = ()
    config: ConfigFacts
    profile: ProfileFacts | None = None
    disk: DiskFacts | None = None


class FarFacts(Record):
    """What the other end told; where it told nothing, why not."""

    problem: str = ""
    hint: str = ""
    me: Myself | None = None
    round_trips: tuple[float, ...] = ()
    """In seconds."""
    skew_seconds: float | None = None
    """How far the database's clock is ahead of this machine's."""
    database: DatabaseState | None = None
    seal: SealStatus | None = None
    duties: tuple[DutyState, ...] | None = None
    refused: tuple[tuple[str, str], ...] = ()
    """What was asked and not told, with the reason."""
