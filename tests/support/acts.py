"""A valid example of every operation that writes an act down: what has to be there first, and what is asked.

An example gives the values of its request. Content that must never reach the trail holds MARKER.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

from agent_console.domain.ids import AgentId
from agent_console.domain.tokens import NewOperatorToken, NewRegistrationToken, NewWorkerToken
from agent_console.repository.operations.credentials import (
    OPERATOR_TOKENS_MINT,
    REGISTRATION_TOKENS_MINT,
    WORKER_TOKENS_MINT,
)
from agent_console.repository.postgres.registry.credentials_at_rest import KEY_VARIABLE
from tests.support.act_stage import ANA, KEYS, MARKER, Stage, new_name
from tests.support.asking import add_route, started
from tests.support.conversations import let_in
from tests.support.trail import old_act, seal

Values = dict[str, object]
Example = Callable[[Stage], Awaitable[Values]]


def of_agent(**more: object) -> Example:
    async def example(stage: Stage) -> Values:
        return {"agent_id": await stage.hosted()} | more

    return example


def plain(**values: object) -> Example:
    async def example(stage: Stage) -> Values:
        return values

    return example


async def resuming(stage: Stage) -> Values:
    agent_id = await stage.hosted()
    await stage.do("agents.drain", agent_id=agent_id, reason="checks")
    return {"agent_id": agent_id}


async def deleting(stage: Stage) -> Values:
    return {"agent_id": await stage.id_of("agents.import", agent_id=AgentId.new(), name=new_name())}


async def registering(stage: Stage) -> Values:
    minted = await stage.admin.call(REGISTRATION_TOKENS_MINT, NewRegistrationToken())
    return {"token": minted.secret, "nonce": "n" * 20, "name": new_name(), "profile": {"words": MARKER}}


async def rotating_key(stage: Stage) -> Values:
    return {"agent_id": stage.agent("dispatch")}


async def revoking_registration(stage: Stage) -> Values:
    return {"token_id": (await stage.admin.call(REGISTRATION_TOKENS_MINT, NewRegistrationToken())).id}


async def of_worker_token(stage: Stage) -> Values:
    minted = await stage.admin.call(WORKER_TOKENS_MINT, NewWorkerToken(worker_id="beacon", description=MARKER))
    return {"token_id": minted.id}


async def of_operator_token(stage: Stage) -> Values:
    minted = await stage.admin.call(OPERATOR_TOKENS_MINT, NewOperatorToken(user_id=stage.fleet.user_id(ANA)))
    return {"token_id": minted.id}


async def minting_operator_token(stage: Stage) -> Values:
    return {"user_id": stage.fleet.user_id(ANA), "name": "laptop"}


async def of_connector(stage: Stage) -> Values:
    return {"connector_id": (await stage.connector()).id}


async def creating_connector(stage: Stage) -> Values:
    await stage.connector()
    return {"name": new_name(), "type": "s3", "credentials": {"key": MARKER}}


async def updating_connector(stage: Stage) -> Values:
    return await of_connector(stage) | {"config": {"bucket": MARKER}}


async def setting_credentials(stage: Stage) -> Values:
    return await of_connector(stage) | {"credentials": {"key": MARKER}}


async def moving_connector(stage: Stage) -> Values:
    return await of_connector(stage) | {"to": "agent"}


async def reporting_connector(stage: Stage) -> Values:
    connector = await stage.connector(credential_location="pending")
    return {"connector_id": connector.id, "available": True}


async def resealing(stage: Stage) -> Values:
    await stage.connector(credentials={"key": MARKER})
    stage.keys.setenv(KEY_VARIABLE, ",".join(KEYS[::-1]))
    return {}


async def of_collection(stage: Stage) -> Values:
    return {"collection_id": await stage.collection()}


async def updating_collection(stage: Stage) -> Values:
    return await of_collection(stage) | {"location": f"{MARKER}/2"}


async def refreshing(stage: Stage) -> Values:
    return await of_collection(stage)


async def of_person(stage: Stage) -> Values:
    return {"user_id": await stage.person()}


async def promoting(stage: Stage) -> Values:
    return await of_person(stage) | {"role": "operator"}


async def deactivating(stage: Stage) -> Values:
    return await of_person(stage) | {"reason": "left the team"}


async def activating(stage: Stage) -> Values:
    values = await deactivating(stage)
    await stage.do("users.deactivate", **values)
    return {"user_id": values["user_id"]}


async def opening_session(stage: Stage) -> Values:
    return {"agent_id": stage.agent("atlas")}


async def closing_session(stage: Stage) -> Values:
    return {"session_id": await stage.session()}


async def closing_sessions(stage: Stage) -> Values:
    await stage.session()
    return {"agent_id": stage.agent("atlas"), "reason": "data leak"}


async def of_job(stage: Stage) -> Values:
    return {"job_id": await stage.job()}


async def retrying(stage: Stage) -> Values:
    return {"job_id": await stage.ended_job()}


async def reprioritising(stage: Stage) -> Values:
    return await of_job(stage) | {"priority": 9}


async def rebinding(stage: Stage) -> Values:
    return await of_job(stage) | {"agent_id": stage.agent()}


async def of_jobs(stage: Stage) -> Values:
    return {"ids": [await stage.job(), await stage.job()]}


async def retrying_many(stage: Stage) -> Values:
    return {"ids": [await stage.ended_job()]}


async def reprioritising_many(stage: Stage) -> Values:
    return await of_jobs(stage) | {"priority": 9}


async def resuming_queue(stage: Stage) -> Values:
    await stage.do("queue.resume")
    await stage.do("queue.pause", mode="drain", reason="checks")
    return {}


async def of_thread(stage: Stage) -> Values:
    return {"thread_id": stage.thread()}


async def changing_thread(stage: Stage) -> Values:
    return await of_thread(stage) | {"title": f"{MARKER} again"}


async def granting(stage: Stage) -> Values:
    return await of_thread(stage) | {"user_id": stage.fleet.user_id("ole@example.com")}


async def of_participant(stage: Stage) -> Values:
    thread_id = stage.thread()
    return {"thread_id": thread_id, "participant_id": let_in(stage.fleet, thread_id, "ole@example.com")}


async def changing_rights(stage: Stage) -> Values:
    return await of_participant(stage) | {"can_write": True}


async def posting(stage: Stage) -> Values:
    return await of_thread(stage) | {"content": MARKER, "payload": {"words": MARKER}}


async def starting_run(stage: Stage) -> Values:
    return await of_thread(stage) | {"target_agent_id": stage.agent()}


async def cancelling_run(stage: Stage) -> Values:
    return {"run_id": (await started(stage.admin, stage.fleet, stage.thread(), "beacon")).id}


async def delegating(stage: Stage) -> Values:
    thread_id = stage.thread()
    add_route(stage.fleet, "atlas", "beacon")
    let_in(stage.fleet, thread_id, "atlas", write=True)
    return {"to": stage.agent(), "thread_id": thread_id, "input": MARKER}


async def changing_route(stage: Stage) -> Values:
    add_route(stage.fleet, "dispatch", "beacon", "blocked")
    return {
        "from_agent": "dispatch",
        "to_agent": "beacon",
        "policy": "allowed",
        "notes": MARKER,
        "base_version": 1,
    }


async def removing_route(stage: Stage) -> Values:
    return {"route_id": add_route(stage.fleet, "dispatch", "atlas"), "base_version": 1}


async def applying_policy(stage: Stage) -> Values:
    text = getattr(await stage.do("routes.export"), "text", "")
    stage.fleet.execute("delete from a2a_routes where from_agent_id = %s", stage.agent("atlas"))
    return {"text": text, "reason": "as it was"}


async def deciding(stage: Stage) -> Values:
    waits = (await stage.waiting()).approval
    assert waits is not None
    digest = stage.fleet.one("select digest from approvals where id = %s", waits.id)
    return {"approval_id": waits.id, "digest_seen": digest}


async def rejecting(stage: Stage) -> Values:
    return await deciding(stage) | {"reason": "too early"}


async def pruning(stage: Stage) -> Values:
    old_act(stage.fleet, datetime(2020, 1, 1, tzinfo=UTC))
    seal(stage.fleet)
    return {}


AS_ATLAS = frozenset({"connectors.report", "runs.delegate"})
EXAMPLES: Mapping[str, Example] = {
    "agents.rename": of_agent(name="thing-renamed"),
    "agents.drain": of_agent(reason="checks"),
    "agents.resume": resuming,
    "agents.limit": of_agent(max_concurrent_jobs=7),
    "agents.configure": of_agent(profile={"words": MARKER}),
    "agents.revoke": of_agent(reason="lost"),
    "agents.delete": deleting,
    "agents.import": plain(agent_id=AgentId.new(), name="thing-imported", profile={"words": MARKER}),
    "agents.host": plain(name="thing-hosted"),
    "agents.move": of_agent(to="error", reason="no room"),
    "agents.register": registering,
    "agents.rotate_key": rotating_key,
    "jobs.create": plain(type="report", payload={"words": MARKER}),
    "registration_tokens.mint": plain(name="for a laptop"),
    "registration_tokens.revoke": revoking_registration,
    "worker_tokens.mint": plain(worker_id="beacon", description=MARKER),
    "worker_tokens.revoke": of_worker_token,
    "worker_tokens.rotate": of_worker_token,
    "operator_tokens.mint": minting_operator_token,
    "operator_tokens.revoke": of_operator_token,
    "operator_tokens.rotate": of_operator_token,
    "connectors.create": creating_connector,
    "connectors.update": updating_connector,
    "connectors.set_credentials": setting_credentials,
    "connectors.move": moving_connector,
    "connectors.delete": of_connector,
    "connectors.report": reporting_connector,
    "connectors.reseal": resealing,
    "collections.create": plain(name="thing-collection", type="s3", location=MARKER),
    "collections.update": updating_collection,
    "collections.delete": of_collection,
    "collections.refresh": refreshing,
    "users.create": plain(email="mia@example.com", full_name="Mia", role="viewer"),
    "users.put": plain(subject="oidc|7", email="kim@example.com", full_name="Kim"),
    "users.set_role": promoting,
    "users.deactivate": deactivating,
    "users.activate": activating,
    "settings.set": plain(name="max_hops", value=3),
    "sessions.open": opening_session,
    "sessions.close": closing_session,
    "sessions.close_all": closing_sessions,
    "jobs.create_many": plain(jobs=[{"type": "report", "payload": {"words": MARKER}}] * 2),
    "jobs.cancel": of_job,
    "jobs.retry": retrying,
    "jobs.reprioritise": reprioritising,
    "jobs.rebind": rebinding,
    "jobs.cancel_many": of_jobs,
    "jobs.retry_many": retrying_many,
    "jobs.reprioritise_many": reprioritising_many,
    "queue.pause": plain(mode="drain", reason="checks"),
    "queue.resume": resuming_queue,
    "threads.create": plain(title=MARKER),
    "threads.update": changing_thread,
    "threads.archive": of_thread,
    "threads.grant": granting,
    "threads.change_rights": changing_rights,
    "threads.revoke": of_participant,
    "messages.post": posting,
    "runs.start": starting_run,
    "runs.cancel": cancelling_run,
    "runs.delegate": delegating,
    "routes.put": changing_route,
    "routes.apply": applying_policy,
    "routes.delete": removing_route,
    "approvals.approve": deciding,
    "approvals.reject": rejecting,
    "audit.prune": pruning,
}
