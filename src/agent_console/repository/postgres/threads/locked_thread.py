"""Rights in a thread while nobody else can change them."""

from agent_console.domain.ids import ThreadId
from agent_console.repository.postgres.threads.access import Access, thread_access
from agent_console.repository.postgres.work import Work


async def locked_access(work: Work, thread_id: ThreadId) -> Access:
    """The statement that waits for the lock still sees the rights from before it waited; the next one does not."""
    await thread_access(work, thread_id, lock=True)
    return await thread_access(work, thread_id)
