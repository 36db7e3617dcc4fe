"""What an agent runs: jobs of an agent-console server, worked by a handler in Python or by any program.

agent = Agent("https://console.example.com", key)

@agent.handle("report")
async def report(job: JobContext) -> dict[str, JsonValue]:
    job.progress(percentage=50, message="half of it")
    return {"rows": 7}

asyncio.run(agent.run())
"""

from agent_console.agent.client import Agent
from agent_console.agent.job import JobContext
from agent_console.agent.outcome import Done, Handler, JobFailure
from agent_console.agent.pace import Pace

__all__ = ["Agent", "Done", "Handler", "JobContext", "JobFailure", "Pace"]
