"""Which acts a caller may see, and how an act is shown."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, and_, case, func, null, or_, select
from sqlalchemy.engine import RowMapping

from agent_console.database.tables import audit_log, audit_seals
from agent_console.domain.audit_trail import AuditFilter, AuditRow
from agent_console.domain.identity import Caller
from agent_console.domain.permissions import Role
from agent_console.repository.postgres.threads.access import may_read


def _wanted(wanted: AuditFilter, act: FromClause) -> list[list[ColumnElement[bool]]]:
    """What is asked for by equality, the most telling first; each has an index, in the order of `seq`."""
    exact = None if wanted.action is None or wanted.action.endswith(".") else wanted.action
    thing: list[tuple[str, object]] = [
        ("resource_type", wanted.resource_type),
        ("resource_id", wanted.resource_id),
    ]
    whole = None not in (wanted.resource_type, wanted.resource_id)
    ways: list[list[tuple[str, object]]] = [
        [("run_id", wanted.run_id)],
        [("thread_id", wanted.thread_id)],
        *([thing] if whole else []),
        [("actor_agent_id", wanted.actor_agent_id)],
        [("actor_user_id", wanted.actor_user_id)],
        [("action", exact)],
    ]
    return [[act.c[name] == value for name, value in way] for way in ways if way[0][1] is not None]


def led_by(wanted: AuditFilter) -> list[ColumnElement[bool]]:
    """The one filter whose index is walked; the others are asked of what that gives."""
    return next(iter(_wanted(wanted, audit_log)), [])


def other_filters(caller: Caller, wanted: AuditFilter, act: FromClause) -> list[ColumnElement[bool]]:
    """All that is asked for, for a bounded number of acts."""
    conditions = [condition for way in _wanted(wanted, act) for condition in way]
    plain = {"resource_type": wanted.resource_type, "resource_id": wanted.resource_id}
    conditions += [act.c[name] == value for name, value in plain.items() if value is not None]
    if wanted.action is not None and wanted.action.endswith("."):
        conditions.append(func.starts_with(act.c.action, wanted.action))
    if wanted.decision is not None:
        conditions.append(act.c.decision == wanted.decision.value)
    if wanted.since is not None:
        conditions.append(act.c.created_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(act.c.created_at < wanted.until)
    if (visible := may_see(caller, act)) is not None:
        conditions.append(visible)
    return conditions


def may_see(caller: Caller, act: FromClause) -> ColumnElement[bool] | None:
    """An administrator sees everything; the others what happened in threads they may read, and their own acts."""
    if caller.role is Role.ADMIN:
        return None
    return or_(
        act.c.actor_user_id == caller.user_id,
        and_(act.c.thread_id.is_not(None), may_read(caller, act.c.thread_id)),
    )


def shown_columns(caller: Caller, act: FromClause) -> list[ColumnElement[Any]]:
    plain = (
        *("id", "seq", "created_at", "actor_type", "actor_user_id", "actor_agent_id", "action", "resource_type"),
        *("resource_id", "thread_id", "run_id", "decision", "reason", "metadata"),
    )
    return [
        *(act.c[name] for name in plain),
        act.c.actor_label.label("actor"),
        func.encode(act.c.event_hash, "hex").label("event_hash"),
        _place(caller, act, func.host(act.c.ip)).label("ip"),
        _place(caller, act, act.c.user_agent).label("user_agent"),
    ]


def _place(caller: Caller, act: FromClause, value: ColumnElement[Any]) -> ColumnElement[Any]:
    if caller.role is Role.ADMIN:
        return value
    return case((act.c.actor_user_id == caller.user_id, value), else_=null())


def with_seals(page: Select[Any]) -> Select[Any]:
    """A page of acts, each with its place in the chain, which audit_seals_audit_uq knows.

    Ordered once more: what a join puts together comes in whichever order it was found, and in a young trail that
    is the order of a hash.
    """
    acts = page.subquery("acts")
    sealed = and_(audit_seals.c.team_id == acts.c.team_id, audit_seals.c.audit_id == acts.c.id)
    return (
        select(acts, audit_seals.c.position, func.encode(audit_seals.c.hash, "hex").label("seal"))
        .select_from(acts.outerjoin(audit_seals, sealed))
        .order_by(acts.c.seq.desc())
    )


def as_row(found: RowMapping) -> AuditRow:
    return AuditRow.model_validate(dict(found))
