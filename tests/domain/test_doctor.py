"""The doctor's judgement: every finding can be fine, and each of its faults is told with what to do."""

from datetime import UTC, datetime

import pytest

from agent_console.domain.audit_trail import SealStatus
from agent_console.domain.database_state import DatabaseState
from agent_console.domain.doctor import findings, is_fine, summary
from agent_console.domain.doctor_facts import (
    DIRECT,
    EMBEDDED,
    SERVER,
    ConfigFacts,
    DiskFacts,
    FarFacts,
    LocalFacts,
    Package,
    ProfileFacts,
    TerminalFacts,
)
from agent_console.domain.duties import DUTY_RULES, DutyState
from agent_console.domain.findings import Finding, Verdict
from agent_console.domain.identity import AuthSource, Myself
from agent_console.domain.ids import TeamId, UserId
from agent_console.domain.permissions import Role
from agent_console.domain.versions import satisfies

AT = datetime(2099, 3, 1, 3, 0, tzinfo=UTC)
TERMINAL = TerminalFacts(
    is_terminal=True, term="xterm-256color", colours=256, width=80, height=24, encoding="UTF-8"
)
LOCAL = LocalFacts(
    terminal=TERMINAL,
    python="3.11.7",
    program_version="1.2.0",
    packages=(Package(name="textual", installed="8.2.8", wanted="==8.2.8"),),
    config=ConfigFacts(file="config.toml", exists=True, mode=0o600),
    profile=ProfileFacts(name="prod", kind=SERVER, leads_to="https://console.example.com"),
    disk=DiskFacts(folder="data", free_bytes=50 << 30, total_bytes=100 << 30),
)
DATABASE = DatabaseState(
    at=AT,
    version="18.1",
    version_number=180001,
    schema_revision="0005",
    wanted_revision="0005",
    is_served=True,
    is_standby=False,
    max_connections=100,
    connections=12,
    autovacuum=True,
    oldest_transaction_seconds=None,
    hidden_transactions=0,
    user="agent_console_app",
    is_superuser=False,
    may_rewrite_audit=False,
)
ME = Myself(
    team_id=TeamId(int=1),
    team="example",
    user_id=UserId(int=2),
    name="Ana Costa",
    role=Role.ADMIN,
    auth_source=AuthSource.OPERATOR_TOKEN,
    program_version="1.2.0",
    database_version="18.1",
)
SEAL = SealStatus(
    team_id=TeamId(int=1),
    team="example",
    position=7,
    hash="0" * 64,
    sealed_at=AT,
    unsealed=0,
    lag_seconds=0.0,
    at=AT,
    months=(),
    kept_since=AT,
    checkpoints=(),
)
DUTIES = tuple(
    DutyState(
        name=rule.name,
        does=rule.does,
        every_seconds=rule.every_seconds,
        late=False,
        failing=False,
        done_at=AT,
        done_seconds_ago=1.0,
        done_by="host:1",
        seconds=0.1,
        rounds=1,
        rows=0,
        failures=0,
        failed_at=None,
        error=None,
    )
    for rule in DUTY_RULES
)
FAR = FarFacts(
    me=ME,
    round_trips=(0.004, 0.002, 0.003),
    skew_seconds=0.01,
    database=DATABASE,
    seal=SEAL,
    duties=DUTIES,
)


def of(found: tuple[Finding, ...], what: str) -> Finding:
    [finding] = [finding for finding in found if finding.what == what]
    return finding


def test_where_all_is_well_nothing_is_advised() -> None:
    found = findings(LOCAL, FAR)

    assert is_fine(found)
    assert summary(found) == "Everything is fine."
    assert [finding.what for finding in found if finding.verdict is not Verdict.FINE] == ["clipboard"]
    assert [finding.what for finding in found if finding.advice] == ["clipboard"]
    assert of(found, "latency").value == "2 / 3 / 4 ms (least, median, most of 3)"


FAULTS: list[tuple[str, Verdict, str, LocalFacts, FarFacts]] = []


def fault(what: str, verdict: Verdict, advice: str, local: LocalFacts = LOCAL, far: FarFacts = FAR) -> None:
    FAULTS.append((what, verdict, advice, local, far))


def with_terminal(**changed: object) -> LocalFacts:
    return LOCAL.model_copy(update={"terminal": TERMINAL.model_copy(update=changed)})


def with_database(**changed: object) -> FarFacts:
    return FAR.model_copy(update={"database": DATABASE.model_copy(update=changed)})


def with_config(**changed: object) -> LocalFacts:
    return LOCAL.model_copy(update={"config": LOCAL.config.model_copy(update=changed)})


def with_first_duty(**changed: object) -> FarFacts:
    return FAR.model_copy(update={"duties": (DUTIES[0].model_copy(update=changed), *DUTIES[1:])})


LATE = {"late": True, "done_seconds_ago": 600.0}

fault("TERM", Verdict.WRONG, "TERM=xterm-256color", with_terminal(term="dumb"))
fault("colours", Verdict.WARNING, "--theme ansi", with_terminal(colours=8))
fault("size", Verdict.WRONG, "60x20", with_terminal(width=59))
fault("size", Verdict.WARNING, "80x24", with_terminal(height=22))
fault("letters", Verdict.WARNING, "LANG=C.UTF-8", with_terminal(encoding="ANSI_X3.4-1968"))
fault("line", Verdict.WARNING, "ssh -C", with_terminal(over_ssh=True))
fault("clipboard", Verdict.UNKNOWN, "allow-passthrough", with_terminal(within="tmux"))
fault("focus", Verdict.UNKNOWN, "focus-events", with_terminal(within="tmux"))
fault("Python", Verdict.WRONG, "3.11", LOCAL.model_copy(update={"python": "3.10.2"}))
fault(
    "textual",
    Verdict.WRONG,
    "pip install",
    LOCAL.model_copy(update={"packages": (Package(name="textual", installed="8.3.0", wanted="==8.2.8"),)}),
)
fault("file", Verdict.WARNING, "chmod 600 config.toml", with_config(mode=0o644))
fault("file", Verdict.WRONG, "Correct it", with_config(problem="it is not valid TOML", hint="Correct it"))
fault("keymap", Verdict.WARNING, "agent-console keys", with_config(keymap_problems=("x is taken twice",)))
fault(
    "credential",
    Verdict.WRONG,
    "Put the secret",
    LOCAL.model_copy(
        update={"profile": ProfileFacts(name="p", kind=DIRECT, leads_to="db", credential_problem="not there")}
    ),
)
fault(
    "disk",
    Verdict.WARNING,
    "Make room",
    LOCAL.model_copy(update={"disk": DiskFacts(folder="data", free_bytes=4 << 30, total_bytes=100 << 30)}),
)
fault(
    "disk",
    Verdict.WRONG,
    "Make room",
    LOCAL.model_copy(update={"disk": DiskFacts(folder="data", free_bytes=1 << 20, total_bytes=100 << 30)}),
)
fault("connection", Verdict.WRONG, "start it", far=FarFacts(problem="No server answers.", hint="start it"))
fault("latency", Verdict.WARNING, "--slow", far=FAR.model_copy(update={"round_trips": (0.1, 0.4, 0.4)}))
fault(
    "server",
    Verdict.WARNING,
    "Upgrade the server",
    far=FAR.model_copy(update={"me": ME.model_copy(update={"program_version": "1.1.9"})}),
)
fault(
    "server",
    Verdict.WARNING,
    "Upgrade agent-console here",
    far=FAR.model_copy(update={"me": ME.model_copy(update={"program_version": "1.10.0"})}),
)
fault("PostgreSQL", Verdict.WRONG, "15 to 18", far=with_database(version="14.9", version_number=140009))
fault("PostgreSQL", Verdict.WARNING, "15 to 18", far=with_database(version="19.0", version_number=190000))
fault("schema", Verdict.WRONG, "db migrate", far=with_database(schema_revision="0004", is_served=False))
fault("schema", Verdict.WRONG, "Upgrade agent-console", far=with_database(schema_revision="0006", is_served=False))
fault("writable", Verdict.WRONG, "primary", far=with_database(is_standby=True))
fault("connections", Verdict.WARNING, "max_connections", far=with_database(connections=81))
fault("autovacuum", Verdict.WRONG, "autovacuum = on", far=with_database(autovacuum=False))
fault("transactions", Verdict.WARNING, "end it", far=with_database(oldest_transaction_seconds=61.0))
fault("transactions", Verdict.UNKNOWN, "pg_read_all_stats", far=with_database(hidden_transactions=2))
fault("rights", Verdict.WARNING, "agent_console_app", far=with_database(is_superuser=True))
fault("rights", Verdict.WARNING, "agent_console_app", far=with_database(may_rewrite_audit=True))
fault("its clock", Verdict.WARNING, "NTP", far=FAR.model_copy(update={"skew_seconds": -7.5}))
fault(
    "seals",
    Verdict.WARNING,
    "duties",
    far=FAR.model_copy(update={"seal": SEAL.model_copy(update={"unsealed": 3, "lag_seconds": 6.0})}),
)
fault("duties", Verdict.WRONG, "server", far=with_first_duty(**LATE))
fault("duties", Verdict.WRONG, "server", far=with_first_duty(failing=True, error="no space left"))


@pytest.mark.parametrize(
    ("what", "verdict", "advice", "local", "far"),
    FAULTS,
    ids=[f"{fault[0]}-{fault[2]}" for fault in FAULTS],
)
def test_a_fault_is_told_with_what_to_do(
    what: str, verdict: Verdict, advice: str, local: LocalFacts, far: FarFacts
) -> None:
    found = findings(local, far)

    finding = of(found, what)

    assert (finding.verdict, advice in finding.advice) == (verdict, True), finding
    assert is_fine(found) is (verdict is not Verdict.WRONG)


def test_a_newer_schema_that_serves_the_program_is_fine() -> None:
    found = findings(LOCAL, with_database(schema_revision="0006"))

    assert of(found, "schema").value == "0006, serves 0005"
    assert of(found, "schema").verdict is Verdict.FINE


def test_a_database_of_ones_own_may_rest() -> None:
    resting = FAR.model_copy(update={"duties": tuple(duty.model_copy(update=LATE) for duty in DUTIES)})
    own = LOCAL.model_copy(update={"profile": ProfileFacts(name="local", kind=EMBEDDED, leads_to="data")})

    verdicts = [of(findings(local, resting), "duties").verdict for local in (own, LOCAL)]

    assert verdicts == [Verdict.WARNING, Verdict.WRONG]


def test_what_is_not_told_is_not_known() -> None:
    far = FAR.model_copy(update={"seal": None, "refused": (("seals", "You may not read the trail."),)})

    found = findings(LOCAL, far)

    assert of(found, "seals").verdict is Verdict.UNKNOWN
    assert is_fine(found)


@pytest.mark.parametrize(
    ("installed", "wanted", "fits"),
    [
        ("8.2.8", "==8.2.8", True),
        ("8.2.9", "==8.2.8", False),
        ("2.0", "==2.0.0", True),
        ("0.28.1", ">=0.28", True),
        ("0.9", ">=0.28", False),
        ("3.3", ">=3,<4", True),
        ("4.0", ">=3,<4", False),
        ("1", "!=1", False),
        ("2", ">2", False),
        ("2", "<=1.9", False),
        ("anything", "", True),
    ],
)
def test_versions_are_compared_by_their_numbers(installed: str, wanted: str, fits: bool) -> None:
    assert satisfies(installed, wanted) is fits
