"""The process of the demo's agents comes back when it dies, and what it said is kept."""

from pathlib import Path

from agent_console.cli.demo.agents_process import LOG_FILE, AgentsProcess
from tests.agent.stage import until


async def test_what_a_process_said_before_it_died_is_there_when_it_is_back(tmp_path: Path) -> None:
    log = tmp_path / LOG_FILE
    log.write_text("of another day")

    async with AgentsProcess(tmp_path) as agents:
        agents.work_at("http://127.0.0.1:9", "opt_key_of_nobody")
        await until(lambda: log.read_text().count("No server answers at http://127.0.0.1:9") >= 2)

    assert "of another day" not in log.read_text()
