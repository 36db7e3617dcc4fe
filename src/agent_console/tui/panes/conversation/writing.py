"""Writing to a thread: a draft, whom it goes to, and what came of sending it."""

from dataclasses import replace

from textual import on, work
from textual.content import Content
from textual.message import Message

from agent_console.domain.ids import AgentId, ThreadId
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.dialogs.recipients import RecipientsDialog
from agent_console.tui.panes.conversation.drafts import Draft, drafts_of
from agent_console.tui.panes.conversation.sending import NO_CONNECTION, NOTHING_TO_SAY, send
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.widgets.draft_box import DraftBox

NAMES_SHOWN = 200
SENDING = "sending"


class Writing(DraftBox):
    """Keeps its draft outside of the screen: it is there again when the thread is opened again."""

    class Said(Message):
        """It is in the thread now."""

    class Changed(Message):
        """There is a draft now, or none any more, or something about it is to be told."""

    def __init__(self, around: Surroundings, thread_id: ThreadId) -> None:
        super().__init__()
        self._around = around
        self._of = thread_id
        self._drafts = drafts_of(around.link)
        self._is_sending = False
        self.agents: dict[AgentId, str] = {}
        self.problem = ""

    @property
    def draft(self) -> Draft:
        return self._drafts.of(self._of)

    def begin(self) -> None:
        self._tell_whom()
        self._tell("")
        self.open(self.draft.text)

    def leave(self) -> None:
        self.close()
        self.post_message(self.Changed())

    def know(self, agents: dict[AgentId, str]) -> None:
        self.agents = agents
        self._tell_whom()

    @on(DraftBox.Edited)
    def _edited(self, message: DraftBox.Edited) -> None:
        if message.text != self.draft.text:
            self._keep(replace(self.draft, text=message.text))
            self._tell("")

    def _keep(self, draft: Draft) -> None:
        self._drafts.keep(self._of, draft)

    @on(DraftBox.RecipientsWanted)
    def _recipients_wanted(self) -> None:
        self._choose_recipients()

    @work(group="recipients", exclusive=True)
    async def _choose_recipients(self) -> None:
        dialog = RecipientsDialog(self.agents, self.draft.to, self.draft.broadcast)
        chosen = await self.app.push_screen_wait(dialog)
        if chosen is not None:
            to, broadcast = chosen
            self._keep(replace(self.draft, to=to, broadcast=broadcast))
            self._tell_whom()

    @on(DraftBox.SendWanted)
    def send_draft(self) -> None:
        if self._is_sending:
            return
        if not self.draft.says_something:
            self._tell(NOTHING_TO_SAY)
        elif not self._around.up:
            self._tell(NO_CONNECTION)
        else:
            self._is_sending = True
            self._tell("Sending …")
            # Whoever closes the thread meanwhile does not take the message back.
            self.app.run_worker(self._send(), group=SENDING)

    async def _send(self) -> None:
        app = self.app
        try:
            sent = await send(self._around.link, self._drafts, self._of)
        finally:
            self._is_sending = False
        for warning in sent.warnings:
            app.notify(agent_text(warning, limit=500).plain, severity="warning", markup=False)
        if not self.is_attached:
            if sent.problem:
                app.notify(agent_text(sent.problem, limit=500).plain, severity="warning", markup=False)
            return
        self._tell(sent.problem)
        if not sent.problem:
            self.show(self.draft.text)
            self.post_message(self.Said())

    def _tell(self, problem: str) -> None:
        self.problem = problem
        self.remark(agent_text(problem, "$text-warning", limit=300))
        self.post_message(self.Changed())

    def _tell_whom(self) -> None:
        self.say_to(whom_line(self.draft, self.agents))


def whom_line(draft: Draft, agents: dict[AgentId, str]) -> Content:
    label = system_text("To ", "bold")
    if draft.broadcast:
        return label + system_text(
            f"every agent of the thread ({len(agents)}): each starts a run", "$text-warning"
        )
    if not draft.to:
        return label + system_text("nobody in particular: no agent is asked to act", "$foreground-muted")
    names = ", ".join(agents.get(agent_id, str(agent_id)) for agent_id in draft.to)
    return label + agent_text(names, "bold", limit=NAMES_SHOWN)
