"""What there is to filter by, as only the other side knows it."""

from agent_console.domain.agents import AgentQuery
from agent_console.domain.filters import Known
from agent_console.domain.records import PAGE_LIMIT_MAX, Nothing
from agent_console.repository.operations import AGENTS_LIST
from agent_console.repository.operations.explaining import QUEUE_STATS
from agent_console.tui.link import Link
from agent_console.tui.widgets.filter_line import NOTHING_KNOWN, KnownValues


async def known_values(link: Link, known: Known) -> KnownValues:
    match known:
        case Known.AGENTS:
            agents = await link.call(AGENTS_LIST, AgentQuery(limit=PAGE_LIMIT_MAX))
            return KnownValues(tuple(sorted(agent.name for agent in agents.items)), complete=agents.next is None)
        case Known.JOB_TYPES:
            stats = await link.call(QUEUE_STATS, Nothing())
            return KnownValues(tuple(sorted(count.type for count in stats.by_type)))
    return NOTHING_KNOWN
