"""Who may vouch for a server: this machine's authorities, or only those of one file."""

import os
import ssl
from pathlib import Path

from agent_console.domain.errors import ConfigError

CA_FILE_VARIABLE = "AGENT_CONSOLE_CA_FILE"


def trusted(ca_file: Path | None) -> ssl.SSLContext | bool:
    """What httpx verifies with; True is its usual way. Without a file the variable may name one."""
    named = ca_file or os.environ.get(CA_FILE_VARIABLE)
    if not named:
        return True
    path = Path(named).expanduser()
    try:
        return ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        reason = "it holds no certificate in PEM"
    except OSError as error:
        reason = error.strerror or str(error)
    raise ConfigError(
        f"The certificates in {path} can't be used: {reason}.",
        hint=f"Correct ca_file of the profile, or {CA_FILE_VARIABLE}.",
        details={"file": str(path)},
    )
