"""An agent in Python: it is asked in a thread to do something, has it done by another, and tells what came of it.

    python ask_a_reviewer.py https://console.example.com author.key agt_…

Between the two stands a person, if the route between the agents asks for one. Stop and start this program while it
waits: it goes on waiting for the same answer.
"""

import asyncio
import sys
from pathlib import Path

from agent_console.agent import Agent, JobContext, JobFailure
from agent_console.domain.delegation import DelegationState


def author(url: str, key: str, reviewer: str) -> Agent:
    agent = Agent(url, key)

    @agent.handle("agent_run")
    async def write_and_ask(job: JobContext) -> str:
        asked = await job.message()
        wish = "a draft" if asked is None else asked.content
        await job.post_message(f"I ask for a review of: {wish}")
        job.progress(50, "waiting for the review")

        answer = await job.delegate(reviewer, f"Please review: {wish}")

        if answer.state is not DelegationState.ALLOWED:
            decided = answer.approval.decision_reason if answer.approval else None
            raise JobFailure(f"The review was {answer.state.value}: {decided or 'no reason was given'}")
        if answer.run is None or answer.run.status != "succeeded":
            raise JobFailure("The reviewer could not do it.", retryable=True)
        return f"reviewed: {answer.run.output_summary.get('summary', 'without a word')}"

    return agent


if __name__ == "__main__":
    url, key_file, reviewer = sys.argv[1:]
    asyncio.run(author(url, Path(key_file).read_text().strip(), reviewer).run())
