"""Taking secrets out of text and JSON before they reach a log, a crash report or a screen.

It leans to taking out too much. Every pattern is possessive or bounded and starts at a fixed word, so a text
costs one pass per rule that may concern it, whoever made it.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from agent_console.domain.errors import JSONValue

REDACTED = "«redacted»"
NESTING_LIMIT = 100

_NAMES_IN_TEXT = (
    *("password", "passwords", "passwd", "passphrase", "pwd"),
    *("secret", "secrets", "token", "credential", "credentials", "signature"),
    *("api_key", "access_key", "secret_key", "private_key", "signing_key", "encryption_key"),
)
_FIELD_ENDINGS = tuple(name.replace("_", "") for name in (*_NAMES_IN_TEXT, "authorization", "cookie"))

_FLAGS = re.IGNORECASE | re.ASCII
_QUOTE = r"""(?:\\{0,3}["'])?"""
_ASSIGNED = rf"""{_QUOTE}[ \t]{{0,4}}(?:=>|:=|[:=])[ \t]{{0,4}}"""
# Up to the closing quote or the end of the line; a quote that was itself escaped ends at its like.
_IN_QUOTES = r"""(?:"(?:[^"\\\n]++|\\.)*+|'(?:[^'\\\n]++|\\.)*+|\\{1,3}["'](?:[^"'\\\n]++|\\(?!\\{0,2}["']))*+)"""

# Team and public id, 26 characters each, come first; the eight after them are what the console shows.
_OUR_KEY = re.compile(
    r"(?P<kind>(?:agt|art|wkt|opt)_key_)(?:\w{52}(?P<shown>\w{8})(?=\w{16}))?[\w-]++(?:«redacted»)?", _FLAGS
)
_TAKEN_OUT = re.compile(r"(?:(?:agt|art|wkt|opt)_key_\w{0,8})?«redacted»", _FLAGS)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----"
    r"(?:[A-Za-z0-9+/=\\\s:,.]++|-(?!----))*+"
    r"(?:-----END [A-Z0-9 ]{0,50}-----)?"
)
# The whole run is taken even when it is no token after all: "eyJeyJeyJ…" must not be tried at every "eyJ".
_WEB_TOKEN = re.compile(r"eyJ[\w-]*+(?:\.[\w-]*+){0,4}", re.ASCII)
_WELL_KNOWN_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[0-9A-Z]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_\w{20,}+|glpat-[\w-]{16,}+"
    r"|sk-[\w-]{20,}+|[sr]k_(?:live|test)_\w{16,}+"
    r"|xox[abeoprs]-[\w-]{10,}+|AIza[\w-]{35}|hf_[A-Za-z0-9]{20,}+|npm_[A-Za-z0-9]{20,}+|pypi-[\w-]{20,}+)",
    re.ASCII,
)
_ADDRESS = re.compile(r"://((?:(?!://)[^\s\"'<>])++)")
_PORT = re.compile(r"\d{1,5}[/?#]")
_AUTHORIZATION = re.compile(
    rf"(?P<before>authorization{_ASSIGNED}{_QUOTE}"
    r"(?P<scheme>(?:basic|bearer|token|apikey|negotiate)[ \t]{1,4})?)"
    r"(?P<value>(?(scheme)[^\s\"'\\]++|[^\n\"'\\]++))",
    _FLAGS,
)
_COOKIE = re.compile(rf"(?P<before>\bcookie{_ASSIGNED}{_QUOTE})(?P<value>[^\n\"'\\]++)", _FLAGS)
_BEARER = re.compile(r"(?P<before>\bbearer[ \t]{1,8})(?!bearer\b)(?P<value>[\w.~+/=-]++(?:«redacted»)?)", _FLAGS)
_NAMED_VALUE = re.compile(
    rf"(?P<before>(?:{'|'.join(name.replace('_', '[_-]?') for name in _NAMES_IN_TEXT)}){_ASSIGNED})"
    rf"(?P<value>{_IN_QUOTES}|[^\s&\"'<>]++)",
    _FLAGS,
)


class _Rule(NamedTuple):
    hints: tuple[str, ...]
    """Lower-case words; without one of them in the text the pattern is not tried."""
    pattern: re.Pattern[str]
    replacement: Callable[[re.Match[str]], str]


def redact(text: str) -> str:
    """The same text without its secrets. Of our own keys the kind and what the console shows of them stay."""
    return _redacted(text, _RULES)


def _redacted(text: str, rules: "tuple[_Rule, ...]") -> str:
    lowered = text.lower()
    if _ANY_HINT.search(lowered) is None:
        return text
    for rule in rules:
        if any(hint in lowered for hint in rule.hints):
            text = rule.pattern.sub(rule.replacement, text)
    return text


def without_keys(text: str) -> str:
    """The same text without what is a key wherever it stands; what only a word before it makes a secret stays.

    For words that somebody else works with: who is told "token: three" must hear the three.
    """
    return _redacted(text, _UNMISTAKABLE)


def holds_key(value: JSONValue) -> bool:
    """Whether there is a key in it that opens something, known by its form alone."""
    match value:
        case str():
            return without_keys(value) != value
        case list():
            return any(holds_key(item) for item in value)
        case dict():
            return any(holds_key(name) or holds_key(field) for name, field in value.items())
        case _:
            return False


def redact_json(value: JSONValue) -> JSONValue:
    """The same JSON without its secrets: whole fields by their names, the rest by what the text looks like.

    `null`, `true` and `false` stay, for they say whether something is set. What lies deeper than
    `NESTING_LIMIT` is taken out unread.
    """
    return _redact_json(value, NESTING_LIMIT)


def redact_object(value: dict[str, JSONValue]) -> dict[str, JSONValue]:
    """The same of an object, which stays one."""
    return _redact_object(value, NESTING_LIMIT)


def _redact_json(value: JSONValue, levels: int) -> JSONValue:
    if isinstance(value, str):
        return redact(value)
    if not isinstance(value, list | dict):
        return value
    if levels == 0:
        return REDACTED
    if isinstance(value, list):
        return [_redact_json(item, levels - 1) for item in value]
    return _redact_object(value, levels)


def _redact_object(value: dict[str, JSONValue], levels: int) -> dict[str, JSONValue]:
    return {
        redact(name): REDACTED if _is_secret(name, field) else _redact_json(field, levels - 1)
        for name, field in value.items()
    }


def _is_secret(name: str, field: JSONValue) -> bool:
    if field is None or isinstance(field, bool):
        return False
    return re.sub(r"[^a-z]", "", name.lower()).endswith(_FIELD_ENDINGS)


def _our_key(match: re.Match[str]) -> str:
    if _TAKEN_OUT.fullmatch(match[0]):
        return match[0]
    return f"{match['kind']}{match['shown'] or ''}{REDACTED}"


def _everything(_: re.Match[str]) -> str:
    return REDACTED


def _web_token(match: re.Match[str]) -> str:
    header, *others = match[0].split(".")
    return REDACTED if len(header) > 10 and others and len(others[0]) > 5 else match[0]


def _value(match: re.Match[str]) -> str:
    value = match["value"]
    content = value.lstrip("\\\"'")
    if not content or _TAKEN_OUT.fullmatch(content):
        return match[0]
    return f"{match['before']}{value.removesuffix(content)}{REDACTED}"


def _bearer(match: re.Match[str]) -> str:
    """A word after "bearer" is a token unless it reads like English: "bearer authentication failed"."""
    value = match["value"]
    return match[0] if value.isalpha() and len(value) < 16 else _value(match)


def _address(match: re.Match[str]) -> str:
    """A password may hold any character: it ends at the last @ of the host part, or else of the address."""
    address = match[1]
    host_end = min((at for at in map(address.find, "/?#") if at >= 0), default=len(address))
    in_host = address.rfind("@", 0, host_end)
    end = in_host if in_host >= 0 else address.rfind("@")
    user, _, password = address[: max(end, 0)].partition(":")
    if not password or password == REDACTED or _PORT.match(password):
        return match[0]
    return f"://{user}:{REDACTED}{address[end:]}"


_UNMISTAKABLE = (
    _Rule(("_key_",), _OUR_KEY, _our_key),
    _Rule(("private key",), _PRIVATE_KEY, _everything),
    _Rule(("eyj",), _WEB_TOKEN, _web_token),
    _Rule(
        (
            *("akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-"),
            *("k_live_", "k_test_", "xox", "aiza", "hf_", "npm_", "pypi-"),
        ),
        _WELL_KNOWN_KEY,
        _everything,
    ),
)
_RULES = (
    *_UNMISTAKABLE,
    _Rule(("://",), _ADDRESS, _address),
    _Rule(("bearer",), _BEARER, _bearer),
    _Rule(("authorization",), _AUTHORIZATION, _value),
    _Rule(("cookie",), _COOKIE, _value),
    _Rule(
        ("passw", "passphrase", "pwd", "secret", "token", "credential", "signature", "key"),
        _NAMED_VALUE,
        _value,
    ),
)
_ANY_HINT = re.compile("|".join(re.escape(hint) for rule in _RULES for hint in rule.hints))
"""Nearly all texts have none of them, and one look tells."""
