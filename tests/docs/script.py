"""A document as one shell script: every command in its order, and those that stay in a terminal of their own."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from tests.docs.blocks import Command, Document

# The fleet's own agents were last heard of in another century.
HEARD_OF = (
    "select 'heard' from agent_runtime where last_heartbeat_at between now() - interval '1 minute' and now()"
)
STAYING = {
    r"^agent-console serve\b": "grep -q 'Listening on' staying",
    r"^agent-console agent run\b": f'psql --no-align --command="{HEARD_OF}" "$FLEET" | grep -q heard',
    r"^agent-console audit tail .*--follow": None,
}
"""Commands that go on until they are told to stop, and what tells that they work, if anything does."""

BEGIN = """\
set -eu
trap 'kill ${staying-} 2>/dev/null || true' EXIT
stay() {
    "$@" >staying 2>&1 &
    staying="$! ${staying-}"
}
heard() {
    until eval "$1"; do
        kill -0 "$!"
        sleep 0.05
    done
}
"""
END = """\
leaving=${staying-}
staying=
for one in $leaving; do
    kill -TERM "$one" 2>/dev/null || true
    wait "$one" && code=0 || code=$?
    case $code in 0|130|143) ;; *) echo "it left with $code" >&2; exit 1;; esac
done
"""


def script(document: Document, real: Callable[[str], str], profile: Mapping[str, str]) -> str:
    """`real` puts real things into the places of those that the document only names; `profile` is where commands
    go that do not say it."""
    before = [command for command in document.commands if command.line < document.profile_line]
    behind = document.commands[len(before) :]
    exported = [f"export {name}={shlex.quote(value)}\n" for name, value in profile.items()]
    return "".join([BEGIN, *_lines(before, real), *exported, *_lines(behind, real), END])


def _lines(commands: Sequence[Command], real: Callable[[str], str]) -> list[str]:
    return [f"echo {shlex.quote(command.place)} >reached\n{_run(real(command.words))}\n" for command in commands]


def _run(words: str) -> str:
    for staying, sign in STAYING.items():
        if re.search(staying, words):
            return f"stay {words}" if sign is None else f"stay {words}\nheard {shlex.quote(sign)}"
    return words
