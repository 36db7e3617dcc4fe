"""What is said in a thread. The audit trail tells that somebody wrote, never what."""

from agent_console.domain.audit import audit_action
from agent_console.domain.messages import (
    POSTS_PER_MINUTE,
    Message,
    MessageAsked,
    MessageHit,
    MessageQuery,
    MessageSearch,
    NewMessage,
    PostedMessage,
    SeqPage,
)
from agent_console.domain.permissions import Permission
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

MESSAGE_CREATED = audit_action("message.create", "recipients", "broadcast", "intervention")

MESSAGES_POST = Operation(
    name="messages.post",
    summary="Say something in a thread; each agent it is addressed to starts a run.",
    verb=Verb.POST,
    path="/v1/threads/{thread_id}/messages",
    request=NewMessage,
    answer=PostedMessage,
    permission=Permission.CONVERSE,
    audit=MESSAGE_CREATED,
    created=True,
    per_minute=POSTS_PER_MINUTE,
)
MESSAGES_LIST = Operation(
    name="messages.list",
    summary="The messages of a thread, newest first; after a seq, oldest first.",
    verb=Verb.GET,
    path="/v1/threads/{thread_id}/messages",
    request=MessageQuery,
    answer=SeqPage[Message],
    permission=Permission.READ_THREADS,
    tells=True,
)
MESSAGES_SEARCH = Operation(
    name="messages.search",
    summary="The messages of a thread that hold some words, newest first.",
    verb=Verb.GET,
    path="/v1/threads/{thread_id}/messages/search",
    request=MessageSearch,
    answer=SeqPage[MessageHit],
    permission=Permission.READ_THREADS,
    tells=True,
)
MESSAGES_GET = Operation(
    name="messages.get",
    summary="One message, whole.",
    verb=Verb.GET,
    path="/v1/threads/{thread_id}/messages/{message_id}",
    request=MessageAsked,
    answer=Message,
    permission=Permission.READ_THREADS,
    tells=True,
)

NOUNS = {"messages": "What is said in a thread."}

# …/messages/search has to be asked before …/messages/{message_id}.
MESSAGES: tuple[AnyOperation, ...] = (MESSAGES_POST, MESSAGES_LIST, MESSAGES_SEARCH, MESSAGES_GET)
