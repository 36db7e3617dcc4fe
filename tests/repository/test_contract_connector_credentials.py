"""Where the credentials of connectors are kept, through both repositories."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from agent_console.domain.agents import AgentAsked
from agent_console.domain.connectors import (
    AGENTS_SHOWN,
    ConnectorAsked,
    ConnectorCredentials,
    ConnectorMove,
    ConnectorQuery,
    ConnectorReport,
    NewConnector,
)
from agent_console.domain.errors import ConfigError, Conflict, Invalid, NotFound
from agent_console.domain.ids import ConnectorId
from agent_console.domain.jobs import NewJob
from agent_console.domain.kinds import CredentialLocation, StorageKind
from agent_console.domain.records import Nothing
from agent_console.repository.operations import AGENTS_GET, JOBS_CREATE
from agent_console.repository.operations.storage import (
    CONNECTORS_DELETE,
    CONNECTORS_LIST,
    CONNECTORS_MOVE,
    CONNECTORS_REPORT,
    CONNECTORS_RESEAL,
    CONNECTORS_SET_CREDENTIALS,
)
from agent_console.repository.port import Repository
from agent_console.repository.postgres.registry import connector_credentials
from agent_console.repository.postgres.registry.credentials_at_rest import (
    KEY_FILE_VARIABLE,
    KEY_VARIABLE,
    Sealed,
    ServerKeys,
    ensure_key_file,
    server_keys,
)
from tests.support.acting_agent import acting_agent
from tests.support.connectors import MARKER, SECRET, audited, get_connector, make_connector, marked_rows
from tests.support.fleet import Fleet

SERVER, AGENT, PENDING = CredentialLocation.SERVER, CredentialLocation.AGENT, CredentialLocation.PENDING
OLD_KEY = base64.urlsafe_b64encode(b"o" * 32).decode()
NEW_KEY = base64.urlsafe_b64encode(b"n" * 32).decode()


@pytest.fixture(autouse=True)
def server_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server has a key, unless a test takes it away."""
    monkeypatch.setenv(KEY_VARIABLE, OLD_KEY)
    monkeypatch.delenv(KEY_FILE_VARIABLE, raising=False)


@pytest.fixture
async def atlas(repository: Repository, fleet: Fleet) -> AsyncIterator[Repository]:
    """The agent atlas, through the same kind of repository as the administrator."""
    async with acting_agent(repository, fleet) as agent:
        yield agent


def sealed_of(fleet: Fleet, connector_id: ConnectorId) -> Sealed | None:
    ((ciphertext, key_id),) = fleet.execute(
        "select credentials_encrypted, credentials_key_id from connectors where id = %s", connector_id
    )
    if ciphertext is None or key_id is None:
        assert ciphertext is key_id is None
        return None
    assert isinstance(ciphertext, bytes)
    return Sealed(ciphertext, str(key_id))


def opened(fleet: Fleet, connector_id: ConnectorId) -> object:
    sealed = sealed_of(fleet, connector_id)
    return None if sealed is None else server_keys().unseal(sealed, fleet.team_id(), connector_id)


@pytest.mark.rule("R000-101", "R002-128")
async def test_the_servers_credentials_are_kept_only_as_ciphertext(repository: Repository, fleet: Fleet) -> None:
    made = await make_connector(repository, credentials=SECRET)
    again = await repository.call(
        CONNECTORS_SET_CREDENTIALS, ConnectorCredentials(connector_id=made.id, credentials=SECRET | {"n": 2})
    )
    listed = await repository.call(CONNECTORS_LIST, ConnectorQuery())

    assert made.has_credentials
    assert opened(fleet, made.id) == SECRET | {"n": 2}
    assert marked_rows(fleet) == 0
    for answer in (made, again, listed):
        assert MARKER not in answer.model_dump_json()
        assert "key_id" not in answer.model_dump_json()
    assert audited(fleet) == ["connector.create", "connector.credentials.set"]
    assert MARKER not in repr(NewConnector(name="x", type=StorageKind.S3, credentials=dict(SECRET)))


async def test_a_ciphertext_opens_only_on_its_own_connector(repository: Repository, fleet: Fleet) -> None:
    first = await make_connector(repository, "first", credentials=SECRET)
    second = await make_connector(repository, "second", credentials=SECRET)
    assert sealed_of(fleet, first.id) != sealed_of(fleet, second.id)

    fleet.execute(
        "update connectors c set credentials_encrypted = f.credentials_encrypted,"
        " credentials_key_id = f.credentials_key_id from connectors f where f.id = %s and c.id = %s",
        *(first.id, second.id),
    )

    assert opened(fleet, first.id) == SECRET
    assert opened(fleet, second.id) is None


async def test_without_a_key_the_server_takes_no_credentials(
    repository: Repository, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)

    with pytest.raises(Conflict) as refused:
        await make_connector(repository, credentials=SECRET)

    assert KEY_VARIABLE in refused.value.hint
    assert fleet.one("select count(*) from connectors") == 0
    assert audited(fleet) == []


@pytest.mark.rule("R000-102", "U000-7")
async def test_credentials_that_are_the_agents_are_refused_and_stored_nowhere(
    repository: Repository, fleet: Fleet
) -> None:
    of_agents = await make_connector(repository, "agents", credential_location="agent")
    pending = await make_connector(repository, "pending", credential_location="pending")
    on_server = await make_connector(repository, "server")
    done = audited(fleet)

    with pytest.raises(Invalid) as refused:
        await make_connector(repository, "another", credential_location="agent", credentials=SECRET)
    for connector in (of_agents, pending):
        given = ConnectorCredentials(connector_id=connector.id, credentials=dict(SECRET))
        with pytest.raises(Invalid):
            await repository.call(CONNECTORS_SET_CREDENTIALS, given)
    with pytest.raises(Invalid):
        move = ConnectorMove(connector_id=on_server.id, to=AGENT, credentials=dict(SECRET))
        await repository.call(CONNECTORS_MOVE, move)
    with pytest.raises(ValidationError):
        ConnectorReport.model_validate({"connector_id": str(pending.id), "available": True, "credentials": SECRET})

    assert "credentials" in str(refused.value.details["fields"])
    assert fleet.one("select count(*) from connectors where credentials_encrypted is not null") == 0
    assert marked_rows(fleet) == 0
    assert audited(fleet) == done


@pytest.mark.rule("R000-103", "R000-20", "U000-42")
async def test_the_first_agent_with_credentials_ends_the_waiting(
    repository: Repository, atlas: Repository, fleet: Fleet
) -> None:
    pending = await make_connector(repository, credential_location="pending")
    report = ConnectorReport(connector_id=pending.id, available=True)

    told = await atlas.call(CONNECTORS_REPORT, report)
    again = await atlas.call(CONNECTORS_REPORT, report)

    assert (told.credential_location, [agent.name for agent in told.agents]) == (AGENT, ["atlas"])
    assert again == told == await get_connector(repository, pending.id)
    agent = await repository.call(AGENTS_GET, AgentAsked(agent_id=fleet.agent_id("atlas")))
    assert agent.connectors == (pending.id,)
    assert audited(fleet) == ["connector.create", "connector.report"]
    assert fleet.execute("select actor_type, actor_agent_id from audit_log order by seq desc limit 1") == [
        ("agent", fleet.agent_id("atlas"))
    ]


async def test_an_agent_without_credentials_is_not_listed(
    repository: Repository, atlas: Repository, fleet: Fleet
) -> None:
    pending = await make_connector(repository, credential_location="pending")

    reports = [ConnectorReport(connector_id=pending.id, available=able) for able in (False, True, False, False)]
    told = [await atlas.call(CONNECTORS_REPORT, report) for report in reports]

    assert [connector.credential_location for connector in told] == [PENDING, AGENT, AGENT, AGENT]
    assert [len(connector.agents) for connector in told] == [0, 1, 0, 0]
    assert audited(fleet) == ["connector.create", "connector.report", "connector.report"]


async def test_a_long_list_of_agents_says_that_it_is_cut(repository: Repository, fleet: Fleet) -> None:
    connector = await make_connector(repository, credential_location="agent")
    fleet.execute(
        """
        with numbered as (
            select n, ('01890a5dac96' || '7' || lpad(to_hex(n), 3, '0') || 'a000000000000000')::uuid as id
              from generate_series(1, %s) as n
        ), people as (
            insert into users (team_id, id, kind, full_name)
            select %s, id, 'system', 'Agent: bulk ' || n from numbered
        ), made as (
            insert into agents (team_id, id, name, owner_user_id, system_user_id, created_by_user_id, worker_id,
                                api_key_hash, api_key_prefix)
            select %s, id, 'bulk ' || n, %s, id, %s, 'bulk ' || n,
                   encode(sha256(n::text::bytea), 'hex'), 'agt_key_x'
              from numbered
        )
        insert into agent_connectors (team_id, agent_id, connector_id) select %s, id, %s from numbered
        """,
        *(AGENTS_SHOWN + 1, fleet.team_id(), fleet.team_id(), fleet.user_id("ana@example.com")),
        *(fleet.user_id("ana@example.com"), fleet.team_id(), connector.id),
    )

    shown = await get_connector(repository, connector.id)

    assert (len(shown.agents), shown.agents_capped) == (AGENTS_SHOWN, True)


async def test_moving_to_the_agents_wipes_the_servers_copy(repository: Repository, fleet: Fleet) -> None:
    made = await make_connector(repository, credentials=SECRET)

    moved = await repository.call(CONNECTORS_MOVE, ConnectorMove(connector_id=made.id, to=AGENT))
    again = await repository.call(CONNECTORS_MOVE, ConnectorMove(connector_id=made.id, to=AGENT))

    assert (moved.credential_location, moved.has_credentials) == (AGENT, False)
    assert again == moved
    assert sealed_of(fleet, made.id) is None
    assert audited(fleet) == ["connector.create", "connector.move"]
    assert fleet.one("select metadata from audit_log where action = 'connector.move'") == {
        **{"from": "server", "to": "agent", "key_id": None},
    }


async def test_moving_to_the_server_needs_the_credentials(repository: Repository, fleet: Fleet) -> None:
    made = await make_connector(repository, credential_location="agent")

    with pytest.raises(Invalid) as refused:
        await repository.call(CONNECTORS_MOVE, ConnectorMove(connector_id=made.id, to=SERVER))
    moved = await repository.call(
        CONNECTORS_MOVE, ConnectorMove(connector_id=made.id, to=SERVER, credentials=dict(SECRET))
    )

    assert "credentials" in str(refused.value.details["fields"])
    assert (moved.credential_location, moved.has_credentials) == (SERVER, True)
    assert opened(fleet, made.id) == SECRET


async def test_other_moves_are_conflicts_that_change_nothing(repository: Repository, fleet: Fleet) -> None:
    made = {
        place: await make_connector(repository, place, credential_location=place) for place in CredentialLocation
    }

    for start, to in ((SERVER, PENDING), (AGENT, PENDING), (PENDING, SERVER)):
        credentials = dict(SECRET) if to is SERVER else None
        with pytest.raises(Conflict):
            move = ConnectorMove(connector_id=made[start].id, to=to, credentials=credentials)
            await repository.call(CONNECTORS_MOVE, move)

    for place, connector in made.items():
        assert await get_connector(repository, connector.id) == connector, place
    assert audited(fleet) == ["connector.create"] * 3


async def test_a_new_key_in_front_seals_everything_again(
    repository: Repository, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector_credentials, "RESEAL_BATCH", 2)
    made = [await make_connector(repository, f"number {n}", credentials=SECRET | {"n": n}) for n in range(3)]
    lost = await make_connector(repository, "lost", credentials=SECRET)
    fleet.execute("update connectors set credentials_key_id = 'gone' where id = %s", lost.id)
    monkeypatch.setenv(KEY_VARIABLE, f"{NEW_KEY}, {OLD_KEY}")

    first = await repository.call(CONNECTORS_RESEAL, Nothing())
    second = await repository.call(CONNECTORS_RESEAL, Nothing())
    monkeypatch.setenv(KEY_VARIABLE, NEW_KEY)

    assert (first.resealed, first.unreadable) == (3, (lost.id,))
    assert (second.resealed, second.unreadable) == (0, (lost.id,))
    assert [opened(fleet, connector.id) for connector in made] == [SECRET | {"n": n} for n in range(3)]
    assert audited(fleet)[4:] == ["connector.reseal"]


async def test_a_deleted_connector_leaves_no_credentials_and_frees_its_name(
    repository: Repository, atlas: Repository, fleet: Fleet
) -> None:
    made = await make_connector(repository, credentials=SECRET)
    await atlas.call(CONNECTORS_REPORT, ConnectorReport(connector_id=made.id, available=True))

    last = await repository.call(CONNECTORS_DELETE, ConnectorAsked(connector_id=made.id))

    assert last.name == "archive"
    assert sealed_of(fleet, made.id) is None
    assert fleet.one("select count(*) from agent_connectors") == 0
    assert (await repository.call(CONNECTORS_LIST, ConnectorQuery())).items == ()
    assert (await make_connector(repository, "archive")).id != made.id
    with pytest.raises(NotFound):
        await repository.call(JOBS_CREATE, NewJob(type="scan", payload={}, connector_id=made.id))


def test_a_key_file_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "server.key"

    keys = [server_keys({KEY_FILE_VARIABLE: str(ensure_key_file(path))}) for _ in range(2)]

    assert keys[0] == keys[1]
    assert path.stat().st_mode & 0o777 == 0o600
    assert [child.name for child in tmp_path.iterdir()] == ["server.key"]
    assert server_keys({KEY_FILE_VARIABLE: str(path), KEY_VARIABLE: NEW_KEY}) == ServerKeys.parse(NEW_KEY)
    assert "nnnn" not in repr(ServerKeys.parse(NEW_KEY))


def test_two_keys_on_two_lines_are_refused_by_the_name_of_their_file(tmp_path: Path) -> None:
    path = ensure_key_file(tmp_path / "server.key")
    path.write_text(f"{OLD_KEY}\n{NEW_KEY}\n", encoding="ascii")

    with pytest.raises(ConfigError) as refused:
        server_keys({KEY_FILE_VARIABLE: str(path)})

    assert refused.value.message == f"The key file {path} holds something that is not a key."
    assert "separate several with commas" in refused.value.hint


def test_a_key_that_others_can_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    path = ensure_key_file(tmp_path / "server.key")
    path.chmod(0o640)

    with pytest.raises(ConfigError, match="chmod 600"):
        server_keys({KEY_FILE_VARIABLE: str(path)})
    with pytest.raises(ConfigError):
        server_keys({KEY_FILE_VARIABLE: str(tmp_path / "missing")})
    for word in ("short", "!" * 43, OLD_KEY[:-2]):
        with pytest.raises(ConfigError) as refused:
            server_keys({KEY_VARIABLE: word})
        assert word not in str(refused.value)


def test_a_key_that_systemd_hands_over_is_read_although_its_mode_shows_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ensure_key_file(tmp_path / "server.key")
    path.chmod(0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))

    keys = server_keys({KEY_FILE_VARIABLE: str(path)}).keys

    assert len(keys) == 1
