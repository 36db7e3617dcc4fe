"""The audit trail as a list: who did what, newest first."""

from collections.abc import Callable
from datetime import datetime

from textual.content import Content

from agent_console.domain.audit_trail import AuditAsked, AuditFilter, AuditQuery, AuditRow
from agent_console.domain.identity import Myself
from agent_console.domain.ids import AuditId, UserId
from agent_console.domain.kinds import Decision
from agent_console.repository.operations.audit_trail import AUDIT_GET, AUDIT_LIST
from agent_console.repository.port import Topic
from agent_console.tui.facts import FactSheet
from agent_console.tui.panes.audit.looks import COLUMNS, THINGS, act_cells, act_facts, act_seal, leading_to
from agent_console.tui.panes.audit.so_far import ActsSoFar
from agent_console.tui.panes.list_kind import ListGroup, ListKind

GROUPS = (
    ListGroup("all", "acts"),
    ListGroup("blocked", "blocked"),
    ListGroup("allowed", "allowed"),
    ListGroup("mine", "of mine"),
)
DECIDED = {"blocked": Decision.BLOCK, "allowed": Decision.ALLOW}
EMPTY = "Nobody has done anything in this time.\nWhat people, agents and the system do is written down here."

Whose = Callable[[], Myself | None]


def group_fields(group: str, me: UserId | None) -> dict[str, object]:
    """What a group is filtered by."""
    if group in DECIDED:
        return {"decision": DECIDED[group]}
    return {"actor_user_id": me, "actor_agent_id": None} if group == "mine" else {}


def narrowed_to(typed: AuditFilter, group: str, me: UserId | None) -> AuditFilter:
    """What was typed, and of that only the group."""
    return typed.model_copy(update=group_fields(group, me))


def audit_kind(typed: Callable[[], AuditFilter], whose: Whose) -> ListKind:
    """`typed` is what the list is filtered by at the moment, `whose` is who looks at it."""

    def me() -> UserId | None:
        myself = whose()
        return None if myself is None else myself.user_id

    def query(group: str, limit: int, after: str | None) -> AuditQuery:
        wanted = narrowed_to(typed(), group, me()).model_dump(exclude_none=True)
        page = {"limit": limit} if after is None else {"limit": limit, "after": after}
        return AuditQuery.model_validate(wanted | page)

    def cells(act: AuditRow, now: datetime) -> tuple[Content, ...]:
        return act_cells(act, now, me())

    def facts(act: AuditRow, now: datetime) -> FactSheet:
        return act_facts(act, now, me())

    return ListKind(
        name="audit",
        title="Audit",
        topics=frozenset({Topic.AUDIT}),
        columns=COLUMNS,
        newest_first=True,
        list_operation=AUDIT_LIST,
        query=query,
        get_operation=AUDIT_GET,
        asked=lambda row_id: AuditAsked(audit_id=AuditId.parse(row_id)),
        cells=cells,
        facts=facts,
        origin=act_seal,
        empty=EMPTY,
        groups=GROUPS,
        jumps={noun: leading_to(noun) for noun in THINGS},
        so_far=ActsSoFar,
    )


AUDIT = audit_kind(AuditFilter, lambda: None)
