"""The agents along the sides of the matrix, in the order of their names, as far as they have been fetched."""

from dataclasses import dataclass, field

from agent_console.domain.ids import AgentId
from agent_console.domain.routes import Matrix, MatrixAgent

PAGE_LEAST = 50


@dataclass(frozen=True)
class AgentsByName:
    """Only the database knows its order of names, so a page is only ever asked for where one began before.

    `marks` say after which agent such a place is; `complete` when nobody follows the last one.
    """

    agents: tuple[MatrixAgent, ...] = ()
    complete: bool = False
    marks: tuple[tuple[AgentId, str], ...] = ()
    places: dict[AgentId, int] = field(default_factory=dict)

    def begin_before(self, index: int) -> tuple[int, str | None]:
        """The nearest place at or before this agent from which a page can be asked for."""
        known = [(self.places[agent] + 1, after) for agent, after in self.marks]
        return max(((place, after) for place, after in known if place <= index), default=(0, None))

    def merged(self, begin: int, matrix: Matrix) -> "AgentsByName":
        """Put in a page that was asked for at this place; who was renamed or deleted leaves its old one."""
        fresh = {agent.id for agent in matrix.agents}
        before = [agent for agent in self.agents[:begin] if agent.id not in fresh]
        known = [self.places[agent.id] for agent in matrix.agents if agent.id in self.places]
        # Without anybody in common there may be more in between: what follows is asked for again.
        rest = self.agents[max(known) + 1 :] if known and matrix.next is not None else ()
        following = [agent for agent in rest if agent.id not in fresh]
        agents = (*before, *matrix.agents, *following)
        places = {agent.id: place for place, agent in enumerate(agents)}
        kept = {agent.id for agent in (*before, *following)}
        marks = {agent: after for agent, after in self.marks if agent in kept}
        if matrix.next is not None and matrix.agents:
            marks[matrix.agents[-1].id] = matrix.next
        complete = matrix.next is None or (self.complete and bool(following))
        return AgentsByName(agents, complete, tuple(marks.items()), places)
