"""What stands above and below a conversation: what it is, and how one stands in it."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from agent_console.domain.kinds import ParticipantType
from agent_console.domain.threads import Participant, Thread
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.panes.conversation.held import Held
from agent_console.tui.panes.conversation.search import Hits

TITLE_SHOWN = 60
WORDS_SHOWN = 30
REMARK_SHOWN = 300
SEPARATOR = " · "
UNTITLED = "(no title)"


def thread_title(thread: Thread) -> str:
    return thread.title or UNTITLED


def heading_of(thread: Thread, participants: Sequence[Participant] | None) -> Content:
    shown = agent_text(thread_title(thread), "bold", limit=TITLE_SHOWN)
    shown += system_text(f"  {thread.visibility.value}", "$foreground-muted")
    if thread.archived_at is not None:
        shown += system_text("  ▣ archived", "$text-warning")
    elif not thread.can_write:
        shown += system_text("  you may only read", "$text-warning")
    if participants is not None:
        people = sum(one.participant_type is ParticipantType.HUMAN for one in participants)
        agents = len(participants) - people
        shown += system_text(
            f"  {people} {'person' if people == 1 else 'people'}, {agents} agent{'' if agents == 1 else 's'}",
            "$foreground-muted",
        )
    return shown


@dataclass(frozen=True)
class Status:
    """`seen` is the newest seq that was on the screen, `remark` what is to be told first.

    It is `live` while what is said now would come on the screen by itself.
    """

    held: Held
    at_end: bool
    live: bool
    seen: int
    hits: Hits | None = None
    has_draft: bool = False
    remark: str = ""

    @property
    def new_below(self) -> str:
        count = sum(message.seq > self.seen for message in self.held.messages)
        hidden = any(gap.before > self.seen and gap.after >= self.seen for gap in self.held.gaps)
        return f"> {count:,}" if hidden else f"{count:,}"


def status_line(status: Status) -> Content:
    parts = []
    if status.remark:
        parts.append(agent_text(status.remark, "$text-warning", limit=REMARK_SHOWN))
    if status.new_below != "0":
        parts.append(system_text(f"↓ {status.new_below} new below, End follows", "bold $text-accent"))
    elif status.at_end and not status.live:
        parts.append(system_text("at the end", "$foreground-muted"))
    elif status.at_end:
        parts.append(system_text("● following", "$text-success"))
    else:
        parts.append(system_text("End follows", "$foreground-muted"))
    if status.hits is not None:
        parts.append(_hits_line(status.hits))
    if status.has_draft:
        # In 80 columns there is room for the keys only while nothing else has to be told; the footer has them too.
        keys = "" if status.remark or status.hits is not None else ": c goes on, S sends"
        parts.append(system_text(f"✎ draft kept{keys}", "$text-warning"))
    return system_text(SEPARATOR, "$foreground-muted").join(parts)


def _hits_line(hits: Hits) -> Content:
    words = system_text("/", "bold") + agent_text(hits.words, "bold", limit=WORDS_SHOWN)
    if not hits.seqs:
        return words + system_text(" … looking" if hits.more else " is nowhere in this thread", "$text-warning")
    return words + system_text(f" {hits.place + 1:,} of {hits.count}, n older, N newer, Esc ends")
