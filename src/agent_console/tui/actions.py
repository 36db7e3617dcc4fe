"""What can be done, derived from the declared operations.

A row's actions are the changing operations that are addressed by its kind of id and nothing else; a list's own
are those of its noun that need no id. Whoever declares an operation has thereby put it into the console.
"""

from dataclasses import dataclass
from typing import get_args

from agent_console.domain.ids import Id
from agent_console.domain.permissions import GRANTS, Permission, Role
from agent_console.repository.operations import OPERATIONS, AnyOperation
from agent_console.repository.operations.fields import value_type


@dataclass(frozen=True)
class Action:
    operation: AnyOperation
    title: str

    @property
    def danger(self) -> bool:
        return self.operation.danger


def _title(operation: AnyOperation, listing: AnyOperation) -> str:
    words = operation.action.replace("_", " ")
    if operation.noun != listing.noun:
        words = f"{words} {operation.noun.replace('_', ' ')}"
    return words.capitalize()


def _may(role: Role, needed: Permission | None) -> bool:
    return needed is None or needed in GRANTS[role]


def _offered(operation: AnyOperation, role: Role) -> bool:
    """Changes that a person of this role can make; what agents do for themselves is not for people."""
    agents_own = operation.public or operation.permission is Permission.ACT_AS_AGENT
    return operation.changes and not agents_own and _may(role, operation.permission)


def row_actions(listing: AnyOperation, role: Role) -> tuple[Action, ...]:
    """What this role can do to one thing of a list: whatever is addressed by that kind of id alone."""
    kind = id_kind(listing)
    return tuple(
        Action(operation, _title(operation, listing))
        for operation in OPERATIONS
        if _offered(operation, role)
        and len(operation.path_fields) == 1
        and value_type(operation.request.model_fields[operation.path_fields[0]].annotation) is kind
    )


def id_kind(listing: AnyOperation) -> type[Id]:
    """The kind of id that the records of a list have."""
    record = get_args(listing.answer.model_fields["items"].annotation)[0]
    found: type[Id] = value_type(record.model_fields["id"].annotation)
    return found


def list_actions(listing: AnyOperation, role: Role) -> tuple[Action, ...]:
    """What this role can do without choosing a thing first: make a new one, mostly."""
    return tuple(
        Action(operation, _title(operation, listing))
        for operation in OPERATIONS
        if _offered(operation, role) and operation.noun == listing.noun and not operation.path_fields
    )
