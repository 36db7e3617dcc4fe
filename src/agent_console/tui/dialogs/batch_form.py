"""A form for work on many things. It only looks: what would be done is shown before anybody is asked to do it."""

from collections.abc import Mapping

from pydantic import BaseModel
from textual.content import Content

from agent_console.domain.batches import BatchRequest
from agent_console.domain.records import Request
from agent_console.tui.actions import IDS, Action
from agent_console.tui.batches import looked, parted
from agent_console.tui.dialogs.form_fields import FormField
from agent_console.tui.dialogs.operation_form import DoIt, OperationForm
from agent_console.tui.link import Link


class BatchForm(OperationForm):
    """Its answer is what was found, as `Looked`."""

    ONLY_LOOKS = True

    def __init__(
        self, action: Action, about: Content, ids: tuple[str, ...], link: Link, fields: tuple[FormField, ...]
    ) -> None:
        """`ids` are the marked things; without any the fields say which ones are meant."""
        # One stands for all of them while the form is filled in: a request takes no more than a batch.
        subject: Mapping[str, str | tuple[str, ...]] = {IDS: ids[:1]} if ids else {}
        super().__init__(action, about, subject, link, fields)
        self._ids = ids

    def _do_it_here(self) -> DoIt:
        return DoIt("see what it would do; nothing is changed yet", danger=False)

    async def _answer(self, request: Request) -> BaseModel:
        if not isinstance(request, BatchRequest):
            raise TypeError(f"{self._action.operation.name} does not work in batches")
        return await looked(self._link, self._action.operation, parted(request, self._ids))
