"""Secrets: one copyable word that tells a typing mistake from a wrong key."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_console.domain.errors import Unauthorized
from agent_console.domain.ids import (
    ALPHABET,
    SUFFIX_LENGTH,
    AgentId,
    OperatorTokenId,
    RegistrationTokenId,
    TeamId,
    WorkerTokenId,
)
from agent_console.domain.secrets import CHECKSUM_LENGTH, Secret, hash_of, same_hash


@pytest.mark.parametrize("kind", [AgentId, RegistrationTokenId, WorkerTokenId, OperatorTokenId])
def test_a_secret_carries_its_team_and_owner(
    kind: type[AgentId | RegistrationTokenId | WorkerTokenId | OperatorTokenId],
) -> None:
    team_id, owner = TeamId.new(), kind.new()

    minted = Secret.mint(team_id, owner)
    read = Secret.parse(f" {minted.word}\n")

    assert (read.team_id, read.owner, read.word) == (team_id, owner, minted.word)
    assert minted.word.startswith(f"{kind.prefix}_key_")
    assert minted.word.replace("_", "").isalnum()


@pytest.mark.rule("R000-22")
def test_the_shown_prefix_differs_between_keys_of_one_owner() -> None:
    team_id, owner = TeamId.new(), AgentId.new()

    shown = {Secret.mint(team_id, owner).shown_prefix for _ in range(50)}

    assert len(shown) == 50
    assert all(one.startswith("agt_key_") and len(one) == 16 for one in shown)


@given(st.data())
def test_any_single_mistake_is_noticed(data: st.DataObject) -> None:
    word = Secret.mint(TeamId.new(), OperatorTokenId.new()).word
    place = data.draw(st.integers(len("opt_key_"), len(word) - 1))
    other = data.draw(st.sampled_from([char for char in ALPHABET if char != word[place]]))

    with pytest.raises(Unauthorized) as refused:
        Secret.parse(word[:place] + other + word[place + 1 :])

    assert word not in str(refused.value)


@pytest.mark.parametrize("text", ["", "opt_key_", "hunter2", "agt_01h455vb4pex5vsknk084sn02q"])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(Unauthorized):
        Secret.parse(text)


def forged(word: str, place: int, letter: str) -> str:
    """Another letter there, and the checksum of what it then is."""
    body = word[:place] + letter + word[place + 1 : -CHECKSUM_LENGTH]
    number = zlib.crc32(body.encode())
    return body + "".join(ALPHABET[number >> 5 * digit & 31] for digit in reversed(range(CHECKSUM_LENGTH)))


@pytest.mark.parametrize("place", [len("agt_key_"), len("agt_key_") + SUFFIX_LENGTH], ids=["team", "owner"])
def test_a_key_with_ids_that_nothing_has_is_no_key_though_its_checksum_fits(place: int) -> None:
    word = Secret.mint(TeamId.new(), AgentId.new()).word

    assert Secret.parse(forged(word, place, "7")).word[place] == "7"
    for letter in ALPHABET[8:]:
        with pytest.raises(Unauthorized):
            Secret.parse(forged(word, place, letter))


@pytest.mark.rule("R000-46")
def test_only_the_hash_can_be_seen() -> None:
    secret = Secret.mint(TeamId.new(), AgentId.new())

    assert secret.word not in repr(secret)
    assert secret.hash == hash_of(secret.word)
    assert len(secret.hash) == 64
    assert same_hash(secret.hash, hash_of(secret.word))
    assert not same_hash(secret.hash, hash_of(secret.word + "x"))
