"""Threads, who takes part in them, and what is said there."""

from agent_console.domain.audit import audit_action
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Page
from agent_console.domain.threads import (
    NewParticipant,
    NewThread,
    Participant,
    ParticipantAsked,
    ParticipantQuery,
    ParticipantRights,
    Thread,
    ThreadAsked,
    ThreadChange,
    ThreadQuery,
)
from agent_console.repository.operations import messages
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

_RIGHTS = ("user_id", "agent_id", "can_read", "can_write", "can_share")

THREAD_CREATED = audit_action("thread.create", "visibility")
THREAD_CHANGED = audit_action("thread.update", "changed", "visibility")
THREAD_ARCHIVED = audit_action("thread.archive", "withdrawn_approvals")
RIGHTS_GRANTED = audit_action("thread.acl.grant", *_RIGHTS)
RIGHTS_CHANGED = audit_action("thread.acl.update", *_RIGHTS)
RIGHTS_REVOKED = audit_action("thread.acl.revoke", "user_id", "agent_id")

THREADS_LIST = Operation(
    name="threads.list",
    summary="The threads you may read, newest first.",
    verb=Verb.GET,
    path="/v1/threads",
    request=ThreadQuery,
    answer=Page[Thread],
    permission=Permission.READ_THREADS,
)
THREADS_CREATE = Operation(
    name="threads.create",
    summary="Begin a thread; you may do everything in it.",
    verb=Verb.POST,
    path="/v1/threads",
    request=NewThread,
    answer=Thread,
    permission=Permission.USE_THREADS,
    audit=THREAD_CREATED,
    created=True,
)
THREADS_GET = Operation(
    name="threads.get",
    summary="One thread, and what you may do in it.",
    verb=Verb.GET,
    path="/v1/threads/{thread_id}",
    request=ThreadAsked,
    answer=Thread,
    permission=Permission.READ_THREADS,
    tells=True,
)
THREADS_UPDATE = Operation(
    name="threads.update",
    summary="Change the title of a thread, or whether the whole team may read it.",
    verb=Verb.PATCH,
    path="/v1/threads/{thread_id}",
    request=ThreadChange,
    answer=Thread,
    permission=Permission.USE_THREADS,
    audit=THREAD_CHANGED,
)
THREADS_ARCHIVE = Operation(
    name="threads.archive",
    summary="End a thread for good: it is still read, but nothing more is written to it.",
    verb=Verb.POST,
    path="/v1/threads/{thread_id}/archive",
    request=ThreadAsked,
    answer=Thread,
    permission=Permission.USE_THREADS,
    audit=THREAD_ARCHIVED,
    danger=True,
)
THREADS_PARTICIPANTS = Operation(
    name="threads.participants",
    summary="Who takes part in a thread, and with which rights.",
    verb=Verb.GET,
    path="/v1/threads/{thread_id}/participants",
    request=ParticipantQuery,
    answer=Page[Participant],
    permission=Permission.READ_THREADS,
    tells=True,
)
THREADS_GRANT = Operation(
    name="threads.grant",
    summary="Let a person or an agent take part in a thread.",
    verb=Verb.POST,
    path="/v1/threads/{thread_id}/participants",
    request=NewParticipant,
    answer=Participant,
    permission=Permission.USE_THREADS,
    audit=RIGHTS_GRANTED,
    created=True,
)
THREADS_CHANGE_RIGHTS = Operation(
    name="threads.change_rights",
    summary="Change what somebody may do in a thread.",
    verb=Verb.PATCH,
    path="/v1/threads/{thread_id}/participants/{participant_id}",
    request=ParticipantRights,
    answer=Participant,
    permission=Permission.USE_THREADS,
    audit=RIGHTS_CHANGED,
)
THREADS_REVOKE = Operation(
    name="threads.revoke",
    summary="End somebody's part in a thread, at once.",
    verb=Verb.DELETE,
    path="/v1/threads/{thread_id}/participants/{participant_id}",
    request=ParticipantAsked,
    answer=Participant,
    permission=Permission.USE_THREADS,
    audit=RIGHTS_REVOKED,
    danger=True,
)

NOUNS = {"threads": "Conversations of people and agents, and who takes part in them."} | messages.NOUNS

THREADS: tuple[AnyOperation, ...] = (
    THREADS_LIST,
    THREADS_CREATE,
    THREADS_GET,
    THREADS_UPDATE,
    THREADS_ARCHIVE,
    THREADS_PARTICIPANTS,
    THREADS_GRANT,
    THREADS_CHANGE_RIGHTS,
    THREADS_REVOKE,
    *messages.MESSAGES,
)
