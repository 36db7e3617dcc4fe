"""What can't be done because a part was not installed is said in one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

from agent_console.domain.errors import ConfigError


@contextmanager
def server_installed() -> Iterator[None]:
    """Around the imports of the server."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"The server is not installed ({error.name} is missing).",
            hint="Install it with: pip install 'agent-console[server]'",
        ) from error
