"""Where documents are run: a fleet, a server, and a folder with all the files that the pages speak of."""

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from agent_console.database.embedded_programs import wheel_programs
from agent_console.domain.ids import ApprovalId, Id, JobId, RunId, ThreadId, UserId
from tests.cli.program import environment, started
from tests.docs.blocks import REPOSITORY, Document
from tests.docs.door import door, program
from tests.docs.script import script
from tests.server.certificates import tls_files
from tests.support.clusters import Cluster
from tests.support.fleet import Fleet
from tests.support.until import until

SECONDS = 300
URL = re.compile(r"https?://(?:console\.example\.com|127\.0\.0\.1:\d+)")
MINT = "agent-console registration-tokens mint | awk '/^secret/ { print $2 }'"
# What a page makes itself before it is named there.
LATEST = {
    "aud": "agent-console audit list --limit 1 -o ids",
    "col": "agent-console collections list -o ids | tail -n 1",
    "con": "agent-console connectors list -o ids | tail -n 1",
    "wkt": "agent-console worker-tokens list --limit 1 -o ids",
}
# A page may shut somebody out.
OTHERS = """
    select u.id from users u join teams t on t.id = u.team_id
     where t.slug = 'example' and u.kind = 'human' and u.is_active and u.email <> 'ana@example.com' order by u.id
"""
SERVER_KEY = "A" * 43
# Whoever says nowhere where to go would get a database of their own.
NOWHERE = "postgresql://127.0.0.1:1/nobody-said-where"
ID = re.compile(r"\b([a-z]{3})_(?:…|01h455vb4pex5vsknk084sn02q)")


@dataclass(frozen=True)
class Stage:
    fleet: Fleet
    other: Cluster
    folder: Path
    url: str

    def real(self, words: str) -> str:
        """The same command, about things that are there."""
        words = URL.sub(self.url, words)
        words = words.replace("art_key_…", f"$({MINT})")
        words = re.sub(r"(agent-console serve)\b", r"\1 --port 0", words)
        for named, there in self._databases().items():
            words = words.replace(named, shlex.quote(there))
        words = words.replace("DIGEST", self._text("select digest from approvals where state = 'pending'"))
        return ID.sub(lambda found: self._id(found[1]), words)

    def _databases(self) -> dict[str, str]:
        return {
            "postgresql://admin@db.example.com/agents": self.fleet.administration,
            "postgresql://console@db.example.com/agents": self.fleet.working,
            "postgresql://admin@new.example.com/postgres": self.other.dsn(),
            "postgresql://admin@new.example.com/agents": self.other.dsn("agents"),
        }

    def _text(self, statement: str) -> str:
        return str(self.fleet.one(statement))

    def _id(self, prefix: str) -> str:
        if prefix in LATEST:
            return f"$({LATEST[prefix]})"
        if prefix == "agt":
            return str(self.fleet.agent_id("atlas"))
        kinds: dict[str, tuple[type[Id], str]] = {
            "job": (JobId, "select id from jobs where status = 'queued' order by id"),
            "thr": (ThreadId, "select id from threads where visibility = 'shared' order by id"),
            "run": (RunId, "select id from runs order by id"),
            "usr": (UserId, OTHERS),
            "apr": (ApprovalId, "select id from approvals where state = 'pending' order by id"),
        }
        kind, statement = kinds[prefix]
        return str(kind(int=self._number(statement)))

    def _number(self, statement: str) -> int:
        found = self.fleet.one(statement)
        assert isinstance(found, UUID)
        return found.int

    def run(self, document: Document) -> None:
        """Run every command of the document; the first that fails is told with what it said."""
        profile = {"AGENT_CONSOLE_CONFIG": str(self._config("fleet", self.fleet.working))}
        text = script(document, self.real, profile)
        home = self.folder / "homes" / Path(document.name).stem
        home.mkdir(parents=True)
        with (self.folder / "said").open("w+", encoding="utf-8") as said:
            done = subprocess.run(
                ["/bin/sh", "-c", text], cwd=self.folder, env=self._environment(home), stdin=subprocess.DEVNULL,
                stdout=said, stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
            )  # fmt: skip
        reached, told = self._text_of("reached").strip(), self._text_of("said") + self._text_of("staying")
        assert done.returncode == 0, f"{reached} ended with {done.returncode}:\n{told[-3000:]}"

    def _text_of(self, name: str) -> str:
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def _environment(self, home: Path) -> dict[str, str]:
        postgres = wheel_programs(18, None).pg_ctl.parent
        path = os.pathsep.join([str(self.folder / "bin"), str(postgres), os.environ["PATH"]])
        return environment(home) | {
            "PATH": path,
            "AGENT_CONSOLE_DOOR": str(self.folder / "door"),
            "AGENT_CONSOLE_SERVER_KEY": SERVER_KEY,
            "AGENT_CONSOLE_CONFIG": str(self._config("nowhere", NOWHERE)),
            "FLEET": self.fleet.administration,
        }

    def _config(self, name: str, dsn: str) -> Path:
        """In a file, as a reader has it: variables would count for whatever a command says about itself."""
        path = self.folder / f"{name}.toml"
        path.write_text(
            f'default_profile = "fleet"\nteam = "example"\nuser = "ana@example.com"\n'
            f"[profiles.fleet]\ndsn = {json.dumps(dsn)}\n",
            encoding="utf-8",
        )
        path.chmod(0o600)
        return path


@contextmanager
def stage(fleet: Fleet, other: Cluster, folder: Path) -> Iterator[Stage]:
    """One server, and one way to start the program, for all documents."""
    lay_out(folder)
    variables = environment(folder, AGENT_CONSOLE_DSN=fleet.working, AGENT_CONSOLE_SERVER_KEY=SERVER_KEY)
    with door(folder / "door"), started("serve", "--port", "0", "--no-access-log", variables=variables) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        # A page asks how everything is, and until a server has begun with them nobody does the duties.
        asyncio.run(until(lambda: bool(fleet.one("select count(*) from duty_rounds"))))
        yield Stage(fleet, other, folder, url)
        server.send_signal(signal.SIGTERM)


def lay_out(folder: Path) -> None:
    (folder / "bin").mkdir()
    program(folder / "bin")
    shutil.copytree(REPOSITORY / "examples", folder / "examples")
    shutil.copy(REPOSITORY / "examples" / "count_files.sh", folder)
    tls_files(folder)
