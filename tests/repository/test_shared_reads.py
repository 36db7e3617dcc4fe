"""What many followers read once: who reads a whole log from its beginning leaves nothing behind."""

from agent_console.domain.ids import TeamId, ThreadId
from agent_console.repository.postgres.live.log_reading import Part
from agent_console.repository.postgres.live.shared_reads import PARTS_KEPT, SharedReads


async def test_only_the_last_parts_of_a_log_are_kept_and_the_end_of_it_is_shared() -> None:
    shared, key = SharedReads(), (TeamId.new(), ThreadId.new())
    read: list[int] = []

    def reading(after: int) -> Part:
        read.append(after)
        return Part(reached=after)

    async def part(after: int) -> Part:
        async def look() -> Part:
            return reading(after)

        return await shared.part(key, after, look)

    for after in range(100):
        await part(after)
    begun = len(read)
    for after in range(100 - PARTS_KEPT, 100):
        await part(after)

    assert len(read) == begun == 100
    await part(0)
    assert read[-1] == 0
