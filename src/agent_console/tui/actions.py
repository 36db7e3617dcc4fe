"""What can be done, derived from the declared operations.

A row's actions are the changing operations whose path names just that kind of thing; a list's own are those
that need no path. Whoever declares an operation has thereby put it into the console.
"""

from dataclasses import dataclass

from agent_console.domain.permissions import GRANTS, Permission, Role
from agent_console.repository.operations import OPERATIONS, AnyOperation


@dataclass(frozen=True)
class Action:
    operation: AnyOperation
    title: str

    @property
    def danger(self) -> bool:
        return self.operation.danger


def _title(operation: AnyOperation) -> str:
    return operation.action.replace("_", " ").capitalize()


def _may(role: Role, needed: Permission | None) -> bool:
    return needed is None or needed in GRANTS[role]


def row_actions(subject: str, role: Role) -> tuple[Action, ...]:
    """What this role can do to one thing; `subject` is its id's name in paths, such as agent_id."""
    return tuple(
        Action(operation, _title(operation))
        for operation in OPERATIONS
        if operation.changes
        and operation.path_fields == (subject,)
        and operation.permission is not Permission.ACT_AS_AGENT
        and _may(role, operation.permission)
    )


def list_actions(noun: str, role: Role) -> tuple[Action, ...]:
    """What this role can do without choosing a thing first: make a new one, mostly."""
    return tuple(
        Action(operation, _title(operation))
        for operation in OPERATIONS
        if operation.changes
        and operation.noun == noun
        and not operation.path_fields
        and not operation.public
        and operation.permission is not Permission.ACT_AS_AGENT
        and _may(role, operation.permission)
    )
