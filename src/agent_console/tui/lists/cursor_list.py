"""A list in an order of its own, of which only the other side can say where a page goes on.

What expires next comes first, or what was decided last: such an order is not that of the ids, and a time that has
crossed HTTP is too coarse to say where a page ended. So the places between pages are kept as they were told, and a
page is always asked for from one of them.
"""

from dataclasses import dataclass, field
from typing import Generic

from agent_console.domain.records import Page
from agent_console.tui.lists.loaded import ListedRecord, id_of


@dataclass(frozen=True)
class Joint:
    """After so many records the list goes on from this place."""

    count: int
    place: str


@dataclass(frozen=True)
class CursorList(Generic[ListedRecord]):
    """Records in the order in which they came, and the joints between their pages."""

    records: tuple[ListedRecord, ...] = ()
    complete: bool = False
    joints: tuple[Joint, ...] = ()
    _places: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = {self.row_id(record): place for place, record in enumerate(self.records)}
        object.__setattr__(self, "_places", places)

    def row_id(self, record: ListedRecord) -> str:
        return str(id_of(record))

    def index_of(self, row_id: str) -> int | None:
        return self._places.get(row_id)

    def last_before(self, index: int) -> str | None:
        """From where a page with this row has to be asked for, or the next page; None is the top of the list."""
        if index >= len(self.records) and not self.complete:
            return self.joints[-1].place if self.joints else None
        count = max((joint.count for joint in self.joints if joint.count <= index), default=0)
        # Pages that found nothing leave joints at one row: something may have come between them since.
        return next((joint.place for joint in self.joints if joint.count == count > 0), None)

    def joint_below(self, place: str | None, before: int) -> str | None:
        """The joint that follows a place, if it stands above a row."""
        if (at := self._joints_to(place)) is None:
            return None
        return next((joint.place for joint in self.joints[at : at + 1] if joint.count < before), None)

    def merged(self, after: str | None, page: Page[ListedRecord]) -> "CursorList[ListedRecord]":
        """Put in a page that was asked for with `after`. What follows its last record is kept, and what follows a
        page that found nothing, until the one after it is there."""
        at = self._joints_to(after)
        if at is None:
            # The list was begun anew while the page was on its way: what lies between is not known.
            return self
        begins = self.joints[at - 1].count if at else 0
        new = {self.row_id(record) for record in page.items}
        before = tuple(record for record in self.records[:begins] if self.row_id(record) not in new)
        joints = tuple(joint for joint in self.joints[:at] if joint.count <= len(before))
        records = before + page.items
        if page.next is None:
            return CursorList(records, True, joints)
        joints = (*joints, Joint(len(records), page.next))
        known = self.index_of(self.row_id(page.items[-1])) if page.items else begins - 1
        if known is None:
            return CursorList(records, False, joints)
        rest = tuple(record for record in self.records[known + 1 :] if self.row_id(record) not in new)
        moved = len(records) - (known + 1)
        below = tuple(Joint(j.count + moved, j.place) for j in self.joints if j.count > known + 1)
        return CursorList(records + rest, self.complete and bool(rest), joints + below)

    def _joints_to(self, place: str | None) -> int | None:
        """How many joints there are down to this one."""
        if place is None:
            return 0
        return next((at for at, joint in enumerate(self.joints, 1) if joint.place == place), None)
