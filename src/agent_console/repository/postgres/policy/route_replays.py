"""A draft of the policy, tried on the requests that the audit trail recorded."""

from sqlalchemy import text

from agent_console.domain.delegation import Outcome
from agent_console.domain.errors import Invalid, JSONValue
from agent_console.domain.ids import AgentId, AuditId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.route_replays import (
    EXAMPLES_MOST,
    REPLAYED_DAYS,
    REPLAYED_MOST,
    Pair,
    Recorded,
    Replay,
    ReplayedKind,
    ReplayedRequest,
    RouteReplay,
    replayed,
)
from agent_console.domain.safe_text import shortened
from agent_console.repository.operations.routes import ROUTES_REPLAY
from agent_console.repository.operations.runs import (
    DELEGATION_ALLOWED,
    DELEGATION_BLOCKED,
    DELEGATION_RATE_LIMITED,
    DELEGATION_REQUESTED,
)
from agent_console.repository.postgres.registry.agent_words import WORD_SHOWN, NamedAgent, agents_called
from agent_console.repository.postgres.work import Work, answers

OUTCOMES = {
    DELEGATION_ALLOWED: Outcome.ALLOWED,
    DELEGATION_REQUESTED: Outcome.WAITING,
    DELEGATION_BLOCKED: Outcome.BLOCKED,
    DELEGATION_RATE_LIMITED: Outcome.RATE_LIMITED,
}


def _newest(action: str) -> str:
    """By audit_log_action_idx. The two bounds say the same as an equality, but with that the planner may rather
    walk the whole trail by seq until it has found enough of a kind that has become rare."""
    return f"""
        (select id, seq, action, created_at, metadata
           from audit_log
          where team_id = :team_id and action >= '{action}' and action <= '{action}'
            and created_at > now() - interval '{REPLAYED_DAYS} days'
          order by audit_log.action, audit_log.seq desc
          limit {REPLAYED_MOST + 1})
    """  # noqa: S608


# One more than is replayed, which only says that there are more.
RECORDED = text(f"""
    select id, action, created_at, metadata ->> 'rule' as rule,
           metadata ->> 'from_agent_id' as asking, metadata ->> 'to_agent_id' as asked
      from ({" union all ".join(_newest(action) for action in OUTCOMES)}) as newest
     order by seq desc
     limit {REPLAYED_MOST + 1}
""")  # noqa: S608


@answers(ROUTES_REPLAY)
async def replay_routes(work: Work, asked: RouteReplay) -> Replay:
    words = {word for route in asked.routes for word in (route.from_agent, route.to_agent)}
    named = await agents_called(work, words)
    draft = _draft(asked, named)
    recorded = await recorded_requests(work)
    looked_at = recorded[:REPLAYED_MOST]
    found = replayed(looked_at, draft)
    names = {agent.id: agent.name for agent in named.values()}
    return Replay(
        requests=len(looked_at),
        since=looked_at[-1].at if looked_at else None,
        capped=len(recorded) > REPLAYED_MOST,
        concerned=found.concerned,
        stopped_before=found.stopped_before,
        changed=len(found.changed),
        kinds=tuple(
            ReplayedKind(before=before, after=after, count=count)
            for (before, after), count in found.kinds.most_common()
        ),
        examples=tuple(
            ReplayedRequest(
                audit_id=request.audit_id,
                at=request.at,
                from_agent_id=request.pair[0],
                from_agent=names[request.pair[0]],
                to_agent_id=request.pair[1],
                to_agent=names[request.pair[1]],
                before=request.outcome,
                after=after,
            )
            for request, after in found.changed[:EXAMPLES_MOST]
        ),
    )


def _draft(asked: RouteReplay, named: dict[str, NamedAgent]) -> dict[Pair, RoutePolicy | None]:
    draft: dict[Pair, RoutePolicy | None] = {}
    problems: list[str] = []
    for place, route in enumerate(asked.routes, start=1):
        unknown = [word for word in (route.from_agent, route.to_agent) if word not in named]
        problems += [f"route {place}: there is no agent {shortened(word, WORD_SHOWN)}" for word in unknown]
        if unknown:
            continue
        pair = named[route.from_agent].id, named[route.to_agent].id
        if pair in draft:
            problems.append(f"route {place}: an earlier one is about the same two agents")
        draft[pair] = route.policy
    if problems:
        told: list[JSONValue] = [{"field": "routes", "problem": problem} for problem in problems]
        raise Invalid("The draft can't be replayed as it is.", details={"fields": told})
    return draft


async def recorded_requests(work: Work) -> list[Recorded]:
    return [
        Recorded(
            audit_id=AuditId.of(row.id),
            at=row.created_at,
            pair=(AgentId.parse(row.asking), AgentId.parse(row.asked)),
            outcome=OUTCOMES[row.action],
            rule=row.rule,
        )
        for row in await work.connection.execute(RECORDED, {"team_id": work.caller.team_id})
    ]
