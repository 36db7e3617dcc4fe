"""How an agent of the demo works on a job of the queue."""

from agent_console.agent import Done, Handler, JobContext, JobFailure
from agent_console.demo.pausing import Rest
from agent_console.demo.workload import SAYS_FOR, Task, seconds_of, task_of
from agent_console.domain.ids import ThreadId
from agent_console.domain.kinds import EventLevel

THREAD, AISLE = "thread_id", "aisle"


def worker(rest: Rest) -> Handler:
    async def work(job: JobContext) -> Done:
        task = task_of(job.type, job.payload)
        seconds = seconds_of(task, job.payload)
        for place, words in enumerate(task.says):
            _tell(job, task, place, words)
            if not await rest(job, seconds / len(task.says)):
                job.event("stopped where it was; nothing is left half done", level=EventLevel.WARN)
                return Done()
        if job.attempt <= len(task.fails):
            raise JobFailure(task.fails[job.attempt - 1], code=task.type, retryable=not task.is_final)
        for words in SAYS_FOR.get(task.type, ()):
            job.event(words)
        await _tell_thread(job)
        return Done(task.ends, {"seconds": round(seconds, 1)})

    return work


def _tell(job: JobContext, task: Task, place: int, words: str) -> None:
    share = 100 * place // len(task.says)
    files = None if task.files is None else task.files * share // 100
    job.progress(share, words, stage=words, files_scanned=files, total_files=task.files)
    if place == 0:
        job.event(words)
    elif place == len(task.says) - 1:
        # The first and the last moment have their lines, and what was between comes with the last: who only says
        # what is already in the progress keeps a small machine busy for nothing.
        for line in task.says[1:]:
            job.event(line)


async def _tell_thread(job: JobContext) -> None:
    """A job that belongs to a conversation says there what came of it."""
    thread, aisle = job.payload.get(THREAD), job.payload.get(AISLE)
    if isinstance(thread, str) and isinstance(aisle, int):
        words = f"Aisle {aisle:03}: {aisle * 37 % 211} boxes counted."
        await job.post_message(words, thread_id=ThreadId.parse(thread))
