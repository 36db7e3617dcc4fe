"""Secrets taken out of output that comes line by line, also of those that go over several lines."""

from agent_console.domain.redact import REDACTED, redact

_BEGINS, _ENDS = "-----BEGIN ", "-----END "
_KEY = "PRIVATE KEY"
# The longest private keys in use have some hundred lines; a text that only mentions one hides no more than this.
MOST_LINES = 200


class HiddenSecrets:
    """One stream of lines. Every line is looked at by itself, except inside of a private key."""

    def __init__(self) -> None:
        self._hidden_lines_left = 0

    def line(self, text: str) -> str:
        if self._hidden_lines_left:
            self._hidden_lines_left = 0 if _ENDS in text else self._hidden_lines_left - 1
            return REDACTED
        begins = text.rfind(_BEGINS)
        if begins >= 0 and _KEY in text[begins:] and _ENDS not in text[begins:]:
            self._hidden_lines_left = MOST_LINES
        return redact(text)
