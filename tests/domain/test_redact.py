import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_console.domain.delegation import NewDelegation
from agent_console.domain.errors import JSONValue
from agent_console.domain.ids import (
    AgentId,
    JobId,
    OperatorTokenId,
    RegistrationTokenId,
    TeamId,
    ThreadId,
    WorkerTokenId,
)
from agent_console.domain.jobs import NewJob
from agent_console.domain.messages import CONTENT_BYTES, NewMessage
from agent_console.domain.records import Request
from agent_console.domain.redact import NESTING_LIMIT, REDACTED, redact, redact_json
from agent_console.domain.secrets import Secret
from agent_console.domain.threads import TITLE_LENGTH, NewThread, ThreadChange
from agent_console.domain.working import JobDone

WEB_TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl-_x"
PRIVATE_KEY = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEow+/=\n-----END RSA PRIVATE KEY-----"
PARTS_OF_NOISE = (
    *(
        "password=",
        "token: ",
        '"',
        "\\",
        "Bearer ",
        "Authorization: ",
        "://",
        "u:p@",
        "agt_key_",
        "x1",
        " ",
        "\n",
    ),
    *("eyJhbGciOiJIUzI1NiJ9", ".", "-----BEGIN PRIVATE KEY-----", REDACTED, "Cookie: ", "AKIA", "&", "@"),
)
NOISE = st.lists(st.sampled_from(PARTS_OF_NOISE), max_size=6).map("".join)


@pytest.mark.parametrize("kind", [AgentId, RegistrationTokenId, WorkerTokenId, OperatorTokenId])
def test_of_our_keys_only_what_the_console_shows_stays(
    kind: type[AgentId | RegistrationTokenId | WorkerTokenId | OperatorTokenId],
) -> None:
    secret = Secret.mint(TeamId.new(), kind.new())

    text = redact(f"refused {secret.word}, try again")

    assert text == f"refused {secret.shown_prefix}{REDACTED}, try again"


def test_what_is_shown_of_our_key_stays_also_behind_a_word_for_secrets() -> None:
    secret = Secret.mint(TeamId.new(), AgentId.new())

    assert redact(f"token={secret.word}") == f"token={secret.shown_prefix}{REDACTED}"


def test_a_mangled_key_of_ours_shows_nothing_of_itself() -> None:
    assert redact("AGT_KEY_0123-abc") == f"AGT_KEY_{REDACTED}"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Authorization: Basic dXNlcjpwYXNz 401", "Authorization: Basic «redacted» 401"),
        ("-H 'Authorization: Custom one two' x", "-H 'Authorization: «redacted»' x"),
        ('{"Authorization": "Bearer abc"}', '{"Authorization": "Bearer «redacted»"}'),
        ("sent Bearer abc123.def~ to it", "sent Bearer «redacted» to it"),
        ("Set-Cookie: session=abc; Secure\nnext", "Set-Cookie: «redacted»\nnext"),
        (f"got {WEB_TOKEN}.", "got «redacted»"),
        (f"a\n{PRIVATE_KEY}\nb", "a\n«redacted»\nb"),
        ('"-----BEGIN PRIVATE KEY-----\\nMIIE\\n', '"«redacted»'),
        ("postgresql://u:p@h/db", "postgresql://u:«redacted»@h/db"),
        ("postgresql://u:12345@h:5432,h2/db", "postgresql://u:«redacted»@h:5432,h2/db"),
        ("postgresql://u:p@ss@h/db", "postgresql://u:«redacted»@h/db"),
        ("postgresql://u:p/ss@h/db", "postgresql://u:«redacted»@h/db"),
        ("redis://:pw@h,http://a:b@c", "redis://:«redacted»@h,http://a:«redacted»@c"),
        ("https://h/?token=abc&page=2", "https://h/?token=«redacted»&page=2"),
        ("host=h password='it\\'s me' user=u", "host=h password='«redacted»' user=u"),
        ("PGPASSWORD=hunter2 psql", "PGPASSWORD=«redacted» psql"),
        ('{"db_password": "a\\"b", "n": 1}', '{"db_password": "«redacted»", "n": 1}'),
        ('"{\\"api_key\\": \\"x y\\", \\"n\\": 1}"', '"{\\"api_key\\": \\"«redacted»\\", \\"n\\": 1}"'),
        ("X-Api-Key: abc", "X-Api-Key: «redacted»"),
        ("aws_secret_access_key = wJalr/K7", "aws_secret_access_key = «redacted»"),
        ("id AKIAIOSFODNN7EXAMPLE", "id «redacted»"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "«redacted»"),
        ("sk-proj-abcdefghijklmnopqrstuvwxyz", "«redacted»"),
        ("eyJ12345678.abcdef", "«redacted»"),
        ("Bearer abcdefghijklmnop", "Bearer «redacted»"),
        ("x:///a:b@c?d:e@f", "x:///a:«redacted»@f"),
    ],
)
def test_secrets_are_taken_out_and_the_rest_stays(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "job job_01h455vb4pex5vsknk084sn02q failed after 3 attempts",
        "bearer authentication failed",
        "prompt_tokens=512 max_tokens: 4096",
        "http://localhost:8080/users/@me",
        "a risk-assessment-of-something-quite-long",
        'password: ""',
        "keys start with agt_key_",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "heyJude.sings.along",
        "eyJ1234567.abcdef",
        "eyJ12345678.abcde",
        "eyJ123456789012",
        "bearer abcdefghijklmno",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


@given(
    before=NOISE,
    after=NOISE,
    carrier=st.sampled_from(["agt_key_{}", "password={}", "x://u:{}@h", "Bearer {}"]),
)
def test_no_surroundings_save_a_secret(before: str, after: str, carrier: str) -> None:
    text = f"{before} {carrier.format('hunter2hunter2')}{after}"

    redacted = redact(text)

    assert "hunter2hunter2" not in redacted


@pytest.mark.parametrize("carrier", ["Authorization: Bearer {}", "token={}", "x://u:{}@h", '"api_key": "{}"'])
def test_redacting_again_changes_nothing(carrier: str) -> None:
    once = redact(carrier.format(Secret.mint(TeamId.new(), AgentId.new()).word))

    assert redact(once) == once


def test_fields_are_known_by_their_names() -> None:
    payload: JSONValue = {
        "user": "atlas",
        "clientSecret": "s3cr3t",
        "DB_PASSWORD": 1234,
        "nested": [{"x-api-key": ["a", "b"], "note": "password=hunter2"}],
        "refresh_token": None,
        "has_token": True,
        "prompt_tokens": 512,
    }

    redacted = redact_json(payload)

    assert redacted == {
        "user": "atlas",
        "clientSecret": REDACTED,
        "DB_PASSWORD": REDACTED,
        "nested": [{"x-api-key": REDACTED, "note": f"password={REDACTED}"}],
        "refresh_token": None,
        "has_token": True,
        "prompt_tokens": 512,
    }


@pytest.mark.parametrize(("around", "bracket"), [(lambda deep: [deep], "["), (lambda deep: {"x": deep}, "{")])
def test_json_too_deep_to_read_is_taken_out(around: Callable[[JSONValue], JSONValue], bracket: str) -> None:
    deep: JSONValue = "password=hunter2"
    for _ in range(NESTING_LIMIT + 1):
        deep = around(deep)

    redacted = redact_json(deep)

    assert str(redacted).count(bracket) == NESTING_LIMIT
    assert REDACTED in str(redacted)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "agt_key_",
            "eyJ",
            "eyJa.",
            "://a:",
            "password ",
            'password="',
            '\\"',
            "authorization: ",
            "bearer ",
        ),
        *("-----BEGIN PRIVATE KEY-----", "sk-", "cookie:"),
    ],
)
def test_a_text_made_to_be_slow_costs_no_more_than_its_length(pattern: str) -> None:
    small, large = pattern * (50_000 // len(pattern)), pattern * (400_000 // len(pattern))

    of_small, of_large = _seconds(small), _seconds(large)

    # Eight times the text; sixty-four times the work if it were quadratic.
    assert of_large < 24 * of_small + 0.05


def _seconds(text: str) -> float:
    """Of the processor's time, which a busy machine does not lengthen; the best of three."""
    taken = []
    for _ in range(3):
        start = time.thread_time()
        redact(text)
        taken.append(time.thread_time() - start)
    return min(taken)


KEYS = ("AKIAIOSFODNN7EXAMPLE", "ghp_" + "a" * 36, "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----")


@pytest.mark.rule("U001-21")
@pytest.mark.parametrize("key", KEYS)
def test_a_payload_with_a_key_is_refused_and_what_only_sounds_like_one_is_not(key: str) -> None:
    for payload in ({"deep": [{"x": f"use {key} for it"}]}, {key: 1}):
        with pytest.raises(ValidationError, match="holds a key or token"):
            NewJob.model_validate({"type": "crawl", "payload": payload})
        with pytest.raises(ValidationError, match="holds a key or token"):
            NewMessage.model_validate({"thread_id": str(ThreadId.new()), "content": "see", "payload": payload})

    plain: dict[str, JSONValue] = {"token": "three", "password": None, "url": "https://example.com/a?key=b"}
    assert NewJob.model_validate({"type": "crawl", "payload": plain}).payload == plain


@pytest.mark.rule("U001-21")
@pytest.mark.parametrize("key", KEYS)
def test_a_message_is_kept_without_the_keys_in_it(key: str) -> None:
    said = f"token: three. The key is {key}, handle with care"

    message = NewMessage.model_validate({"thread_id": str(ThreadId.new()), "content": said})

    assert message.content == said.replace(key, REDACTED)


def test_a_place_is_measured_as_it_is_kept() -> None:
    def kept(path: str) -> str | None:
        return JobDone.model_validate({"job_id": JobId.new(), "attempt": 1, "artifacts_path": path}).artifacts_path

    room = 1000 - len(f"?pwd={REDACTED}")

    assert kept("x" * room + "?pwd=1") == "x" * room + f"?pwd={REDACTED}"
    with pytest.raises(ValidationError, match="artifacts_path"):
        kept("x" * (room + 1) + "?pwd=1")


THREAD = {"thread_id": str(ThreadId.new())}


@pytest.mark.rule("R002-41")
@pytest.mark.parametrize(
    ("request_type", "about", "field", "most"),
    [
        (NewMessage, THREAD, "content", CONTENT_BYTES),
        (NewDelegation, THREAD | {"to": str(AgentId.new())}, "input", CONTENT_BYTES),
        (NewThread, {}, "title", TITLE_LENGTH),
        (ThreadChange, THREAD, "title", TITLE_LENGTH),
    ],
)
def test_words_are_measured_as_they_are_kept(
    request_type: type[Request], about: dict[str, str], field: str, most: int
) -> None:
    """What stands in the place of a key may be longer than it was."""
    short, kept = "agt_key_a ", f"agt_key_{REDACTED} "
    fitting = most // len(kept.encode())

    made = request_type.model_validate(about | {field: short * fitting})

    assert getattr(made, field) == kept * fitting
    with pytest.raises(ValidationError, match=f"{field}\n.*must be at most {most}"):
        request_type.model_validate(about | {field: short * (most // len(short))})
