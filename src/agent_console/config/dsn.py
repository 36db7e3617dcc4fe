"""PostgreSQL addresses: the two forms libpq reads, shown without secrets and completed with a password.

libpq itself is not asked, because the console must not import the database driver to read its settings. What
is not understood here is refused when it is loaded, so a password can't hide in a part that would be shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from pydantic import SecretStr

HIDDEN = "***"
# Also of a key that libpq does not know, because it was mistyped. A passfile is a place.
_SECRET_PARAMETER = re.compile(r"(?!passfile$).*(?:pas|pw|secret|token|scram_)", re.I)
# A raw @ is allowed once, before the host: elsewhere it is the sign of a password cut in the wrong place.
_URL = re.compile(
    r"(?P<scheme>postgres(?:ql)?)://"
    r"(?:(?P<user>[^:@/?#\s]*)(?::(?P<password>[^:@/?#\s]*))?@)?"
    r"(?P<hosts>[^@/?#\s]*)"
    r"(?P<database>/[^@/?#\s]*)?"
    r"(?:\?(?P<query>[^@?#\s]*))?"
)
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*)(?::\d*)?")
_WORD = re.compile(
    r"\s*(?P<key>\w+)\s*=\s*(?P<value>'(?:[^'\\]|\\.)*'|(?:[^\s\\']|\\.)(?:[^\s\\]|\\.)*|)(?=\s|$)", re.S
)


def understood(dsn: str) -> bool:
    return _url(dsn) is not None or bool(_words(dsn))


def has_password(dsn: str) -> bool:
    if url := _url(dsn):
        return bool(url["password"]) or "password" in dict(_parameters(url["query"]))
    return "password" in (_words(dsn) or {})


def redacted(dsn: str) -> str:
    """The address as written, each secret in it replaced by ***."""
    if url := _url(dsn):
        query = "&".join(f"{key}={_shown(key, value)}" for key, value in _parameters(url["query"]))
        password = None if url["password"] is None else HIDDEN
        return _joined(url, password, query)
    if words := _words(dsn):
        return " ".join(f"{key}={_shown(key, value)}" for key, value in words.items())
    return HIDDEN


def address(dsn: str) -> str:
    """Host and database, for a header."""
    if url := _url(dsn):
        parameters = dict(_parameters(url["query"]))
        return unquote(url["hosts"] or _host(parameters)) + unquote(url["database"] or "")
    words = {key: value.strip("'") for key, value in (_words(dsn) or {}).items()}
    port = f":{words['port']}" if "port" in words else ""
    database = f"/{words['dbname']}" if "dbname" in words else ""
    return _host(words) + port + database


def with_password(dsn: SecretStr, password: SecretStr, *, keep_own: bool) -> SecretStr:
    """The address with this password; with `keep_own`, one that has a password already stays as it is."""
    text, secret = dsn.get_secret_value(), password.get_secret_value()
    if keep_own and has_password(text):
        return dsn
    return type(dsn)(_url_with(text, secret) or _words_with(text, secret))


def _url_with(dsn: str, password: str) -> str | None:
    url = _url(dsn)
    if url is None:
        return None
    parameters = [f"{key}={value}" for key, value in _parameters(url["query"]) if key != "password"]
    if url["user"]:
        return _joined(url, quote(password, safe=""), "&".join(parameters))
    return _joined(url, None, "&".join([*parameters, f"password={quote(password, safe='')}"]))


def _words_with(dsn: str, password: str) -> str:
    words = dict(_words(dsn) or {})
    escaped = password.replace("\\", "\\\\").replace("'", "\\'")
    words["password"] = f"'{escaped}'"
    return " ".join(f"{key}={value}" for key, value in words.items())


def _url(dsn: str) -> re.Match[str] | None:
    url = _URL.fullmatch(dsn)
    if url is None or not all(_HOST.fullmatch(host) for host in url["hosts"].split(",")):
        return None
    if any("=" not in pair for pair in (url["query"] or "").split("&") if pair):
        return None
    return url


def _joined(url: re.Match[str], password: str | None, query: str) -> str:
    login = url["user"] or ""
    if password is not None:
        login += f":{password}"
    at = "@" if login else ""
    mark = "?" if query else ""
    return f"{url['scheme']}://{login}{at}{url['hosts']}{url['database'] or ''}{mark}{query}"


def _parameters(query: str | None) -> Iterator[tuple[str, str]]:
    for pair in filter(None, (query or "").split("&")):
        key, _, value = pair.partition("=")
        yield unquote(key), value


def _words(dsn: str) -> Mapping[str, str] | None:
    """The key=value form, values as written; None when it isn't one."""
    words, position = {}, 0
    text = dsn.strip()
    while position < len(text):
        word = _WORD.match(text, position)
        if word is None:
            return None
        words[word["key"]] = word["value"]
        position = word.end()
    return words


def _host(parameters: Mapping[str, str]) -> str:
    named = (parameters.get(key) for key in ("host", "hostaddr", "service"))
    return next(filter(None, named), "localhost")


def _shown(key: str, value: str) -> str:
    return HIDDEN if _SECRET_PARAMETER.match(key) else value
