"""Doing something: choose what, fill in its form, see what came of it."""

from typing import TYPE_CHECKING, Any

from textual.content import Content

from agent_console.tui.actions import Action, list_actions, row_actions
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.dialogs.action_menu import ActionMenu
from agent_console.tui.dialogs.operation_form import OperationForm
from agent_console.tui.dialogs.secret_screen import SecretScreen
from agent_console.tui.panes.derived import title_of

if TYPE_CHECKING:
    from textual.app import App

    from agent_console.domain.permissions import Role
    from agent_console.domain.records import Record
    from agent_console.tui.link import Link
    from agent_console.tui.panes.list_kind import ListKind


def actions_on(kind: "ListKind", role: "Role", record: "Record | None") -> tuple[Action, ...]:
    if record is None:
        return list_actions(kind.list_operation, role)
    return row_actions(kind.list_operation, role)


def about(kind: "ListKind", record: "Record | None") -> Content:
    """Names the thing a dialog acts on; an id is never mistaken, a name may be."""
    if record is None:
        return system_text(kind.title, "bold")
    title, key = title_of(record), str(getattr(record, kind.key))
    shown = agent_text(title, "bold", limit=100)
    if key != title:
        shown += agent_text(f"  {key}", "$foreground-muted", limit=100)
    remark = kind.remark(record)
    return shown + system_text("\n") + agent_block(remark, "$foreground-muted") if remark else shown


async def do_something(app: "App[Any]", link: "Link", kind: "ListKind", record: "Record | None") -> None:
    """From the key press on it is about this record, whatever the list does meanwhile."""
    if link.me is None:
        app.notify("There is no connection yet.", severity="warning", markup=False)
        return
    actions = actions_on(kind, link.me.role, record)
    if not actions:
        app.notify("There is nothing you can do here with your role.", severity="warning", markup=False)
        return
    heading = about(kind, record)
    chosen = actions[0] if len(actions) == 1 else await app.push_screen_wait(ActionMenu(heading, actions))
    if chosen is None:
        return
    subject = {name: str(getattr(record, kind.key)) for name in chosen.operation.path_fields}
    answer = await app.push_screen_wait(OperationForm(chosen, heading, subject, link, record))
    if answer is None:
        return
    secret = getattr(answer, "secret", None)
    if isinstance(secret, str):
        await app.push_screen_wait(SecretScreen(f"{chosen.title}: the secret", secret))
    else:
        app.notify(agent_text(f"{chosen.title}: done.").plain, markup=False)
