"""What the server has to say for itself, as lines of JSON among those of its requests: one form for both."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from agent_console.domain.records import shown_time
from agent_console.server.access_log import Write


class EventLog(logging.Handler):
    def __init__(self, write: Write) -> None:
        super().__init__(logging.WARNING)
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        told = {
            "time": shown_time(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["traceback"] = logging.Formatter().formatException(record.exc_info)
        self._write(json.dumps(told))


@contextmanager
def events_told(write: Write) -> Iterator[None]:
    """Within, every warning and every error of this process is written, whoever noticed it."""
    handler = EventLog(write)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
