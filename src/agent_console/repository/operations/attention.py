"""What needs attention."""

from agent_console.domain.attention import AttentionItem, AttentionQuery
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Page
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

ATTENTION_LIST = Operation(
    name="attention.list",
    summary="What needs somebody now, the newest danger first.",
    verb=Verb.GET,
    path="/v1/attention",
    request=AttentionQuery,
    answer=Page[AttentionItem],
    permission=Permission.SEE_FLEET,
)

NOUNS = {"attention": "What somebody should look at now."}

ATTENTION: tuple[AnyOperation, ...] = (ATTENTION_LIST,)
