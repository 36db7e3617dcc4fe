"""What can be done, derived from the declared operations.

A row's actions are the changing operations that are addressed by its kind of id, and by nothing else that the
record does not tell; where records have no id, by the field that stands for it in the paths of their noun. A
list's own are those of its noun that need neither; of a list that belongs to one thing, those that share its path.
Whoever declares an operation has thereby put it into the console.
"""

from dataclasses import dataclass
from typing import get_args

from agent_console.domain.ids import Id
from agent_console.domain.permissions import GRANTS, Permission, Role
from agent_console.domain.records import Record, Request
from agent_console.repository.operations import OPERATIONS, AnyOperation
from agent_console.repository.operations.fields import item_type, value_type

WITHOUT_A_LIST = {"queue": "jobs"}
"""Nouns that have no list, and the list where one looks for them."""
IDS = "ids"
MANY = "_many"


@dataclass(frozen=True)
class Action:
    operation: AnyOperation
    title: str
    to_marked: bool = False

    @property
    def danger(self) -> bool:
        return self.operation.danger

    @property
    def summary(self) -> str:
        """In a sentence. On which things it can be done is left out when that is already said by marks."""
        whole = self.operation.summary
        return f"{whole.partition(':')[0].rstrip('.')}." if self.to_marked else whole


def _title(operation: AnyOperation, listing: AnyOperation) -> str:
    words = operation.action.replace("_", " ")
    if operation.noun != listing.noun:
        words = f"{words} {operation.noun.replace('_', ' ')}"
    return words.capitalize()


def _may(role: Role, needed: Permission | None) -> bool:
    return needed is None or needed in GRANTS[role]


def may_read(listing: AnyOperation, role: Role | None) -> bool:
    """Whether this role is shown the list at all; before it is known, whoever it is finds out."""
    return role is None or _may(role, listing.permission)


def _offered(operation: AnyOperation, role: Role) -> bool:
    """Changes that a person of this role can make; what agents do for themselves is not for people."""
    agents_own = operation.public or operation.permission is Permission.ACT_AS_AGENT
    return operation.changes and not agents_own and _may(role, operation.permission)


def row_actions(listing: AnyOperation, role: Role, record: Record | None = None) -> tuple[Action, ...]:
    """What this role can do to one thing of a list: whatever is addressed by that thing alone.

    Of a `record` only what fits it as it is.
    """
    return tuple(
        Action(operation, _title(operation, listing))
        for operation in OPERATIONS
        if _offered(operation, role) and _addresses(operation, listing) and _fits(operation, record)
    )


def _fits(operation: AnyOperation, record: Record | None) -> bool:
    return record is None or operation.fits is None or operation.fits(record)


def marked_actions(listing: AnyOperation, role: Role, marked: tuple[Record, ...]) -> tuple[Action, ...]:
    """What this role can do to these things together, and to how many of them it fits as they are."""
    return tuple(
        Action(operation, _marked_title(single, listing, marked), to_marked=True)
        for operation in OPERATIONS
        if _offered(operation, role) and takes_ids(operation, listing)
        if (single := one_by_one(operation)) is not None and any(_fits(single, record) for record in marked)
    )


def _marked_title(single: AnyOperation, listing: AnyOperation, marked: tuple[Record, ...]) -> str:
    fitting = sum(_fits(single, record) for record in marked)
    count = f"{fitting:,} of {len(marked):,}" if fitting < len(marked) else f"{fitting:,}"
    return f"{_title(single, listing)} {count} marked"


def takes_ids(operation: AnyOperation, listing: AnyOperation) -> bool:
    """Whether it works on many things of this list, told by their ids."""
    info = operation.request.model_fields.get(IDS)
    if not operation.batched or info is None:
        return False
    return item_type(info.annotation) is value_type(record_of(listing).model_fields[key_field(listing)].annotation)


def one_by_one(operation: AnyOperation) -> AnyOperation | None:
    """The operation that does to one thing what this one does to many."""
    name = operation.name.removesuffix(MANY)
    return next((op for op in OPERATIONS if op.name == name and name != operation.name), None)


def _addresses(operation: AnyOperation, listing: AnyOperation) -> bool:
    """An id says what it is the id of, whoever takes it; a name only means something to its own noun."""
    if not operation.path_fields:
        return False
    *others, field = operation.path_fields
    key, told = key_field(listing), record_of(listing).model_fields
    if not set(others) <= set(told):
        return False
    kind = value_type(told[key].annotation)
    if issubclass(kind, Id):
        return value_type(operation.request.model_fields[field].annotation) is kind
    return operation.noun == listing.noun and field == key


def record_of(listing: AnyOperation) -> type[Record]:
    found: type[Record] = get_args(listing.answer.model_fields["items"].annotation)[0]
    return found


def key_field(listing: AnyOperation) -> str:
    """The field by which a record of a list is known: its id, or else what stands for it in a path."""
    fields = record_of(listing).model_fields
    if "id" in fields:
        return "id"
    in_paths = (name for op in OPERATIONS if op.noun == listing.noun for name in op.path_fields)
    return next((name for name in in_paths if name in fields), next(iter(fields)))


def _list_noun(operation: AnyOperation) -> str:
    return WITHOUT_A_LIST.get(operation.noun, operation.noun)


def _belongs(operation: AnyOperation, listing: AnyOperation) -> bool:
    if listing.path_fields:
        return operation.path == listing.path
    return _list_noun(operation) == listing.noun and not operation.path_fields


def list_actions(listing: AnyOperation, role: Role) -> tuple[Action, ...]:
    """What this role can do without choosing a thing first: make a new one, mostly."""
    return tuple(
        Action(operation, _title(operation, listing))
        for operation in OPERATIONS
        if _offered(operation, role) and _belongs(operation, listing)
    )


def addressed(operation: AnyOperation, key: str, record: Record) -> dict[str, str]:
    """What stands in the path of an operation: the thing's own key last, before it what its record tells."""
    *others, last = operation.path_fields
    return {name: str(getattr(record, name)) for name in others} | {last: key}


def addressed_by_list(operation: AnyOperation, query: Request) -> dict[str, str]:
    """What stands in the path of an operation of a whole list: that which the list is of."""
    return {name: str(getattr(query, name)) for name in operation.path_fields}
