"""What a search in a conversation has found so far, and which of it one looks at."""

import re
from dataclasses import dataclass, replace

from agent_console.domain.messages import MessageHit, SeqPage
from agent_console.domain.snippets import searched_words


@dataclass(frozen=True)
class Hits:
    """Seqs, the newest first. `more` are still to be asked for."""

    words: str
    seqs: tuple[int, ...] = ()
    more: bool = True
    place: int = -1

    def with_page(self, page: SeqPage[MessageHit]) -> "Hits":
        return replace(self, seqs=(*self.seqs, *(hit.seq for hit in page.items)), more=page.next is not None)

    @property
    def seq(self) -> int | None:
        return self.seqs[self.place] if 0 <= self.place < len(self.seqs) else None

    @property
    def needs_more(self) -> bool:
        """Whether the next older one is not known yet."""
        return self.more and self.place + 1 >= len(self.seqs)

    def moved(self, by: int) -> "Hits":
        """To an older one or back, never past either end."""
        return replace(self, place=max(0, min(self.place + by, len(self.seqs) - 1)))

    @property
    def count(self) -> str:
        known = f"{len(self.seqs):,}"
        return f"> {known}" if self.more else known

    @property
    def pattern(self) -> re.Pattern[str] | None:
        words = sorted(searched_words(self.words), key=len, reverse=True)
        either = "|".join(re.escape(word) for word in words)
        return re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE) if words else None
