"""The doctor's judgement: from facts to findings, each with what to do about it."""

from collections.abc import Iterable, Iterator
from statistics import median

from agent_console.domain.database_state import DatabaseState
from agent_console.domain.doctor_facts import (
    EMBEDDED,
    SERVER,
    ConfigFacts,
    DiskFacts,
    FarFacts,
    LocalFacts,
    Package,
    ProfileFacts,
)
from agent_console.domain.doctor_terminal import terminal_findings
from agent_console.domain.duties import DutyState, duty_warnings
from agent_console.domain.findings import Finding, Verdict, judged, not_known
from agent_console.domain.spans import span
from agent_console.domain.versions import numbers, satisfies
from agent_console.domain.why_waiting import OLD_TRANSACTION_SECONDS

PROGRAM, CONFIG, PROFILE = "program", "configuration", "profile"
LINE, DATABASE, UPKEEP = "line", "database", "upkeep"
SLOW_SECONDS = 0.15
SKEW_SECONDS = 5.0
SEAL_LAG_SECONDS = 5.0
NEARLY_ALL = 0.8
LITTLE_DISK = 0.05
VERSIONS = range(15, 19)
READABLE_BY_OTHERS = 0o077
GIGABYTE = 1 << 30


def findings(local: LocalFacts, far: FarFacts | None) -> tuple[Finding, ...]:
    """Everything that was looked at, in the order from the operator's fingers to the data."""
    return (
        *terminal_findings(local.terminal),
        *_program(local),
        *_config(local.config),
        *(_profile(local.profile) if local.profile is not None else ()),
        *(_disk(local.disk) if local.disk is not None else ()),
        *(_far(far, local) if far is not None else ()),
    )


def is_fine(found: Iterable[Finding]) -> bool:
    """Nothing is wrong; a warning is no fault."""
    return not any(finding.verdict is Verdict.WRONG for finding in found)


def summary(found: Iterable[Finding]) -> str:
    verdicts = [finding.verdict for finding in found]
    wrong, warnings = verdicts.count(Verdict.WRONG), verdicts.count(Verdict.WARNING)
    if not wrong and not warnings:
        return "Everything is fine."
    parts = [f"{wrong} wrong"] * bool(wrong) + [f"{warnings} to look at"] * bool(warnings)
    return f"{', '.join(parts)}, {verdicts.count(Verdict.FINE)} fine."


def _program(local: LocalFacts) -> Iterator[Finding]:
    old = "" if numbers(local.python) >= (3, 11) else "Python 3.11 or newer is needed."
    yield judged(PROGRAM, "Python", local.python, wrong=old)
    yield judged(PROGRAM, "version", local.program_version)
    unfit = [package for package in local.packages if not _fits(package)]
    for package in unfit:
        value = f"{package.installed or 'not installed'}, wanted {package.wanted or 'any'}"
        advice = "Install it again: pip install --force-reinstall agent-console"
        yield judged(PROGRAM, package.name, value, wrong=advice)
    if local.packages and not unfit:
        yield judged(PROGRAM, "packages", f"all {len(local.packages)} as wanted")


def _fits(package: Package) -> bool:
    return package.installed is not None and satisfies(package.installed, package.wanted)


def _config(config: ConfigFacts) -> Iterator[Finding]:
    if config.problem:
        yield judged(CONFIG, "file", config.problem, wrong=config.hint or "Correct that.")
    elif not config.exists:
        yield judged(CONFIG, "file", f"{config.file} (not there, which is fine)")
    else:
        yield _file(config)
    for problem in config.keymap_problems:
        yield judged(CONFIG, "keymap", problem, warning="Change it in [keymap]; agent-console keys lists all.")


def _file(config: ConfigFacts) -> Finding:
    if config.mode is None:
        return judged(CONFIG, "file", config.file)
    open_to_others = config.mode & READABLE_BY_OTHERS
    advice = f"Others can read it: chmod 600 {config.file}" if open_to_others else ""
    return judged(CONFIG, "file", f"{config.file} (mode {config.mode:04o})", warning=advice)


def _profile(profile: ProfileFacts) -> Iterator[Finding]:
    marks = [
        mark for mark, there in (("production", profile.production), ("read-only", profile.read_only)) if there
    ]
    named = f"{profile.name} ({', '.join(marks)})" if marks else profile.name
    yield judged(PROFILE, "name", named)
    yield judged(PROFILE, "leads to", f"{profile.kind}: {profile.leads_to}")
    if profile.credential_problem:
        advice = "Put the secret in its place, or name another place in the profile."
        yield judged(PROFILE, "credential", profile.credential_problem, wrong=advice)
    elif profile.credential:
        yield judged(PROFILE, "credential", profile.credential)


def _disk(disk: DiskFacts) -> Iterator[Finding]:
    share = disk.free_bytes / disk.total_bytes if disk.total_bytes else 0.0
    value = f"{disk.free_bytes / GIGABYTE:,.1f} GB free ({share:.0%}) at {disk.folder}"
    advice = "Make room: a full disk stops the database."
    if share < LITTLE_DISK / 5 or disk.free_bytes < GIGABYTE // 4:
        yield judged(PROFILE, "disk", value, wrong=advice)
    else:
        yield judged(PROFILE, "disk", value, warning=advice if share < LITTLE_DISK else "")


def _far(far: FarFacts, local: LocalFacts) -> Iterator[Finding]:
    if far.problem:
        yield judged(LINE, "connection", far.problem, wrong=far.hint or "See whether the other side runs.")
        return
    yield from _line(far)
    if far.me is not None:
        yield judged(LINE, "you are", f"{far.me.name} ({far.me.role.value}) in team {far.me.team}")
        if local.profile is None or local.profile.kind == SERVER:
            yield _same_version(far.me.program_version, local.program_version)
    if far.database is not None:
        yield from _database(far.database)
    if far.skew_seconds is not None:
        yield _clock(far.skew_seconds)
    yield from _upkeep(far, nobody_is_wrong=local.profile is None or local.profile.kind != EMBEDDED)
    for what, reason in far.refused:
        yield not_known(DATABASE, what, reason)


def _line(far: FarFacts) -> Iterator[Finding]:
    if not far.round_trips:
        return
    least, most, middle = min(far.round_trips), max(far.round_trips), median(far.round_trips)
    shown = " / ".join(f"{seconds * 1000:,.0f}" for seconds in (least, middle, most))
    advice = (
        "A slow way to the data: run the console nearer to it, or with --slow." if middle > SLOW_SECONDS else ""
    )
    yield judged(LINE, "latency", f"{shown} ms (least, median, most of {len(far.round_trips)})", warning=advice)


def _same_version(theirs: str, ours: str) -> Finding:
    if theirs == ours:
        return judged(LINE, "server", f"version {theirs}, the same as here")
    older = numbers(theirs) < numbers(ours)
    advice = f"Upgrade {'the server' if older else 'agent-console here'}: they are made for each other."
    return judged(LINE, "server", f"version {theirs}, here {ours}", warning=advice)


def _clock(skew: float) -> Finding:
    far_off = abs(skew) > SKEW_SECONDS
    value = f"{abs(skew):,.1f} s {'ahead' if skew > 0 else 'behind'}" if abs(skew) >= 0.1 else "the same"
    advice = "Ages and countdowns are wrong here: set this machine's clock (NTP)." if far_off else ""
    return judged(DATABASE, "its clock", value, warning=advice)


def _database(state: DatabaseState) -> Iterator[Finding]:
    major = state.version_number // 10_000
    too_old = "PostgreSQL 15 to 18 is supported: upgrade it." if major < VERSIONS.start else ""
    too_new = "Newer than this program was tried with (15 to 18)." if major >= VERSIONS.stop else ""
    yield judged(DATABASE, "PostgreSQL", state.version, wrong=too_old, warning=too_new)
    yield _schema(state)
    standby = "It can only be read: the profile has to lead to the primary." if state.is_standby else ""
    yield judged(DATABASE, "writable", "no, a standby" if state.is_standby else "yes", wrong=standby)
    crowded = state.connections > NEARLY_ALL * state.max_connections
    advice = "Nearly all are taken: raise max_connections, or put a pooler before it." if crowded else ""
    yield judged(DATABASE, "connections", f"{state.connections} of {state.max_connections}", warning=advice)
    off = "" if state.autovacuum else "Turn it on, or the queue gets slower every day: autovacuum = on"
    yield judged(DATABASE, "autovacuum", "on" if state.autovacuum else "off", wrong=off)
    yield _transactions(state)
    yield _rights(state)


def _schema(state: DatabaseState) -> Finding:
    if state.schema_revision == state.wanted_revision:
        return judged(DATABASE, "schema", f"{state.schema_revision}, current")
    if state.is_served:
        return judged(DATABASE, "schema", f"{state.schema_revision}, serves {state.wanted_revision}")
    value = f"{state.schema_revision or 'none'}, wanted {state.wanted_revision}"
    newer = state.schema_revision is not None and state.schema_revision > state.wanted_revision
    return judged(
        DATABASE, "schema", value, wrong=f"{'Upgrade agent-console' if newer else 'agent-console db migrate'}"
    )


def _transactions(state: DatabaseState) -> Finding:
    if state.oldest_transaction_seconds is None:
        hidden = state.hidden_transactions
        if hidden:
            advice = "grant pg_read_all_stats to agent_console_app; then their age is seen."
            return not_known(DATABASE, "transactions", f"{hidden} held by others, of unknown age", advice)
        return judged(DATABASE, "transactions", "none is open for long")
    old = state.oldest_transaction_seconds > OLD_TRANSACTION_SECONDS
    advice = "It slows every claim down: end it (select pid, query from pg_stat_activity)." if old else ""
    value = f"the oldest is open for {span(state.oldest_transaction_seconds)}"
    return judged(DATABASE, "transactions", value, warning=advice)


def _rights(state: DatabaseState) -> Finding:
    advice = "Use a login that has agent_console_app and no more."
    if state.is_superuser:
        return judged(DATABASE, "rights", f"{state.user}, a superuser", warning=advice)
    if state.may_rewrite_audit:
        return judged(DATABASE, "rights", f"{state.user}, who could rewrite the audit trail", warning=advice)
    return judged(DATABASE, "rights", f"{state.user}, no more than needed")


def _upkeep(far: FarFacts, *, nobody_is_wrong: bool) -> Iterator[Finding]:
    if far.seal is not None:
        late = far.seal.unsealed > 0 and far.seal.lag_seconds > SEAL_LAG_SECONDS
        waiting = f"{far.seal.unsealed:,} acts wait, the oldest for {span(far.seal.lag_seconds)}"
        advice = "Nobody seals them: see the duties." if late else ""
        yield judged(UPKEEP, "seals", waiting if far.seal.unsealed else "all acts are sealed", warning=advice)
    if far.duties is not None:
        yield from _duties(far.duties, nobody_is_wrong=nobody_is_wrong)


def _duties(duties: tuple[DutyState, ...], *, nobody_is_wrong: bool) -> Iterator[Finding]:
    """A database on this machine rests while nobody uses it; any other should always have somebody."""
    told = duty_warnings(duties)
    rests = not nobody_is_wrong and all(duty.late and not duty.failing for duty in duties)
    advice = "Fine while nobody uses this database." if rests else "If a server runs, read what it says."
    for words in told:
        yield judged(UPKEEP, "duties", words, wrong="" if rests else advice, warning=advice)
    if not told:
        yield judged(UPKEEP, "duties", f"all {len(duties)} in time")
