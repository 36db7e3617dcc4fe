"""Doing something: choose what, fill in its form, see what came of it."""

from typing import TYPE_CHECKING, Any

from textual.content import Content

from agent_console.domain.batches import BatchRequest
from agent_console.tui.actions import (
    IDS,
    Action,
    addressed,
    addressed_by_list,
    list_actions,
    marked_actions,
    one_by_one,
    row_actions,
    takes_ids,
)
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.batches import Looked
from agent_console.tui.dialogs.action_menu import ActionMenu
from agent_console.tui.dialogs.batch_dialog import BatchDialog
from agent_console.tui.dialogs.batch_form import BatchForm
from agent_console.tui.dialogs.form_fields import batch_fields, form_fields, typed_values
from agent_console.tui.dialogs.operation_form import OperationForm
from agent_console.tui.dialogs.secret_screen import SecretScreen
from agent_console.tui.panes.derived import title_of

if TYPE_CHECKING:
    from textual.app import App

    from agent_console.domain.permissions import Role
    from agent_console.tui.link import Link
    from agent_console.tui.subject import Subject

NAMED = 5
NAMES_SHOWN = 70
SAID_SHOWN = 150
NOT_WITH_YOUR_ROLE = "There is nothing you can do here with your role."
NOT_AS_IT_IS = "There is nothing to be done to it as it is now."


def works_on_marked(subject: "Subject", role: "Role") -> bool:
    """Whether there is anything for many things of this list at once; else marks mean nothing here."""
    listing = subject.kind.list_operation
    together = (action for action in list_actions(listing, role) if takes_ids(action.operation, listing))
    return bool(subject.marked) and any(together)


def actions_on(subject: "Subject", role: "Role") -> tuple[Action, ...]:
    listing = subject.kind.list_operation
    if works_on_marked(subject, role):
        return marked_actions(listing, role, subject.marked)
    if subject.record is not None:
        return row_actions(listing, role, subject.record)
    return list_actions(listing, role)


def about(subject: "Subject", role: "Role") -> Content:
    """Names what a dialog acts on; an id is never mistaken, a name may be."""
    if works_on_marked(subject, role):
        return _about_marked(subject, f"{len(subject.marked):,} marked")
    if subject.record is None:
        return system_text(subject.kind.title, "bold") + system_text(subject.kind.whole, "bold")
    title, key = title_of(subject.record), subject.key_of(subject.record)
    shown = agent_text(title, "bold", limit=100)
    if key != title:
        shown += agent_text(f"  {key}", "$foreground-muted", limit=100)
    remark = subject.kind.remark(subject.record)
    return shown + system_text("\n") + agent_block(remark, "$foreground-muted") if remark else shown


def _about_marked(subject: "Subject", title: str) -> Content:
    """What they are called; their ids are shown before anybody is asked to go on."""
    names = ", ".join(title_of(record) for record in subject.marked[:NAMED])
    more = f" and {len(subject.marked) - NAMED:,} more" if len(subject.marked) > NAMED else ""
    return system_text(f"{title}\n", "bold") + agent_text(f"{names}{more}", "$foreground-muted", limit=NAMES_SHOWN)


async def do_something(app: "App[Any]", link: "Link", subject: "Subject", named: str = "") -> bool:
    """From the key press on it is about this subject, whatever the list does meanwhile. True when it was done.

    `named` is the operation that somebody has chosen already, by its name.
    """
    if link.me is None:
        app.notify("There is no connection yet.", severity="warning", markup=False)
        return False
    role = link.me.role
    actions = tuple(action for action in actions_on(subject, role) if named in ("", action.operation.name))
    if not actions:
        words = NOT_AS_IT_IS if row_actions(subject.kind.list_operation, role) else NOT_WITH_YOUR_ROLE
        app.notify(words, severity="warning", markup=False)
        return False
    heading = about(subject, role)
    chosen = actions[0] if named or _is_the_only_one(subject, role) else await _choice(app, heading, actions)
    if chosen is None:
        return False
    if subject.record is None:
        heading = system_text(f"{subject.kind.title}: {chosen.title.lower()}", "bold")
    elif works_on_marked(subject, role):
        heading = _about_marked(subject, chosen.title)
    if chosen.operation.batched:
        return await _do_many(app, link, subject, chosen, heading)
    return await _do_one(app, link, subject, chosen, heading)


def _is_the_only_one(subject: "Subject", role: "Role") -> bool:
    """Whether there never is a choice; where there sometimes is one, Enter after `a` must always mean the same."""
    listing = subject.kind.list_operation
    if subject.record is None:
        return len(list_actions(listing, role)) == 1
    return len(row_actions(listing, role)) == 1


async def _choice(app: "App[Any]", heading: Content, actions: tuple[Action, ...]) -> Action | None:
    return await app.push_screen_wait(ActionMenu(heading, actions))


async def _do_one(app: "App[Any]", link: "Link", subject: "Subject", chosen: Action, heading: Content) -> bool:
    fields = form_fields(chosen.operation, subject.record)
    answer = await app.push_screen_wait(OperationForm(chosen, heading, _addressed(subject, chosen), link, fields))
    if answer is None:
        return False
    secret = getattr(answer, "secret", None)
    if isinstance(secret, str):
        await app.push_screen_wait(SecretScreen(f"{chosen.title}: the secret", secret))
    else:
        app.notify(agent_text(f"{chosen.title}: done.").plain, markup=False)
    for warning in getattr(answer, "warnings", ()):
        app.notify(agent_text(warning, limit=500).plain, severity="warning", markup=False)
    return True


def _addressed(subject: "Subject", chosen: Action) -> dict[str, str]:
    if subject.record is None:
        return addressed_by_list(chosen.operation, subject.query)
    return addressed(chosen.operation, subject.key_of(subject.record), subject.record)


async def _do_many(app: "App[Any]", link: "Link", subject: "Subject", chosen: Action, heading: Content) -> bool:
    """Marked things, or all that match a filter, which begins as the one the list is shown by."""
    ids = tuple(subject.key_of(record) for record in subject.marked)
    single = one_by_one(chosen.operation)
    every = set(chosen.operation.request.model_fields)
    which = every - set(single.request.model_fields) if ids and single is not None else {IDS}
    fields = batch_fields(chosen.operation, without=which, given={} if ids else typed_values(subject.query))
    found = await app.push_screen_wait(BatchForm(chosen, heading, ids, link, fields))
    if not isinstance(found, Looked):
        return False
    return await app.push_screen_wait(BatchDialog(chosen, heading + _said(found), found, link))


def _said(found: Looked) -> Content:
    """What was typed, for whoever is about to be asked."""
    left_out = {IDS, *BatchRequest.model_fields}
    said = {name: words for name, words in typed_values(found.requests[0]).items() if name not in left_out}
    words = "; ".join(f"{name.removesuffix('_id').replace('_', ' ')}: {words}" for name, words in said.items())
    return system_text("\n") + agent_text(words, limit=SAID_SHOWN) if words else system_text("")
