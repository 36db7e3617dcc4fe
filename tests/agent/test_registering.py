"""Coming in: a token becomes a key in a file of one's own, once, also when an answer gets lost."""

import stat
from pathlib import Path

import pytest

from agent_console.agent import Pace
from agent_console.agent.keys import KeyFile
from agent_console.agent.registering import register
from agent_console.domain.errors import ConfigError, TimedOut, Unauthorized
from agent_console.domain.presence import Heartbeat
from agent_console.domain.registration import AgentRegistration
from agent_console.domain.tokens import NewRegistrationToken
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations.credentials import AGENTS_REGISTER, REGISTRATION_TOKENS_MINT
from agent_console.repository.operations.presence import HEARTBEAT_SEND
from tests.agent.stage import FAST, Stage
from tests.support.asking import ANA


async def token(stage: Stage) -> str:
    async with stage.caller(ANA) as ana:
        return (await ana.call(REGISTRATION_TOKENS_MINT, NewRegistrationToken())).secret


async def come_in(stage: Stage, word: str, key_file: KeyFile, pace: Pace = FAST) -> None:
    wanted = AgentRegistration(token=word, nonce=key_file.nonce(), name="newcomer", capabilities=("files",))
    async with HttpRepository(stage.url, None) as repository:
        await register(repository, wanted, key_file, pace=pace)


@pytest.mark.rule("R000-16")
async def test_the_key_is_kept_for_its_owner_alone_and_works(stage: Stage, tmp_path: Path) -> None:
    key_file = KeyFile(tmp_path / "agent.key")

    await come_in(stage, await token(stage), key_file)

    assert stat.S_IMODE(key_file.path.stat().st_mode) == 0o600
    assert not key_file.nonce_path.exists()
    async with HttpRepository(stage.url, key_file.path.read_text().strip()) as newcomer:
        assert (await newcomer.call(HEARTBEAT_SEND, Heartbeat())).commands == ()


async def test_a_lost_answer_costs_neither_the_token_nor_the_agent(stage: Stage, tmp_path: Path) -> None:
    """The first program asked, was heard, and died before it had the key."""
    key_file, word = KeyFile(tmp_path / "agent.key"), await token(stage)
    nonce = key_file.nonce()
    async with HttpRepository(stage.url, None) as repository:
        lost = AgentRegistration(token=word, nonce=nonce, name="newcomer")
        await repository.call(AGENTS_REGISTER, lost)

    await come_in(stage, word, KeyFile(tmp_path / "agent.key"))

    assert stage.fleet.one("select count(*) from agents where name = 'newcomer'") == 1
    async with HttpRepository(stage.url, key_file.path.read_text().strip()) as newcomer:
        await newcomer.call(HEARTBEAT_SEND, Heartbeat())


async def test_who_is_not_answered_keeps_the_nonce_and_is_told_to_ask_again(stage: Stage, tmp_path: Path) -> None:
    key_file, word = KeyFile(tmp_path / "agent.key"), await token(stage)
    wanted = AgentRegistration(token=word, nonce=key_file.nonce(), name="newcomer")
    await stage.stop_server()

    async with HttpRepository(stage.url, None) as repository:
        with pytest.raises(TimedOut) as refusal:
            await register(repository, wanted, key_file, pace=FAST, patience_seconds=0.2)

    assert "Run the same command again" in refusal.value.hint
    assert (KeyFile(key_file.path).nonce(), key_file.path.exists()) == (wanted.nonce, False)


async def test_a_refused_token_leaves_no_key(stage: Stage, tmp_path: Path) -> None:
    key_file = KeyFile(tmp_path / "agent.key")

    with pytest.raises(Unauthorized):
        await come_in(stage, "art_key_wrong", key_file)

    assert not key_file.path.exists()


def test_a_key_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    key_file = KeyFile(tmp_path / "agent.key")
    key_file.keep("first")

    for overwrite in (key_file.require_absent, lambda: key_file.keep("second")):
        with pytest.raises(ConfigError) as refusal:
            overwrite()
        assert str(key_file.path) in refusal.value.message

    assert key_file.path.read_text() == "first\n"
    assert [path.name for path in tmp_path.iterdir()] == ["agent.key"]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    key_file = KeyFile(tmp_path / "nowhere" / "agent.key")

    with pytest.raises(ConfigError) as refusal:
        key_file.nonce()

    assert "No such file" in refusal.value.message
