"""Paints what lies in front, and of that only the lines that somebody looks at.

Textual goes through the widgets from front to back and keeps for each place the first it finds there, but it
renders all of them whole: for one line that a key changes in a list, every other line of the list, every container
behind it, and whatever stands beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip

Chops = list[dict[int, Strip | None]]
Places = dict[int, set[int]]
"""By line, the columns at which a piece of it begins."""


class FrontFirst(Compositor):
    def _render_chops(
        self, crop: Region, is_rendered_line: Callable[[int], bool]
    ) -> Sequence[Mapping[int, Strip]]:
        chops: Chops = [dict.fromkeys(cuts[:-1]) for cuts in self.cuts]
        unseen = self._places(crop, is_rendered_line)
        for widget, (region, clip) in self.visible_widgets.items():
            if not unseen:
                break
            seen = region.intersection(clip)
            lines = [y for y in unseen if seen.y <= y < seen.bottom and _begins_in(seen, unseen[y])]
            if not lines:
                continue
            first, last = min(lines), max(lines)
            strips = widget.render_lines(Region(seen.x - region.x, first - region.y, seen.width, last - first + 1))
            for y in lines:
                self._fill(chops[y], unseen, y, seen, strips[y - first])
        # As Textual's own does: where nobody looks there is none.
        return cast("Sequence[Mapping[int, Strip]]", chops)

    def _places(self, crop: Region, is_rendered_line: Callable[[int], bool]) -> Places:
        """Every piece of a line that has to be painted."""
        places = {
            y: {
                start
                for start, end in zip(self.cuts[y], self.cuts[y][1:], strict=False)
                if start < crop.right and end > crop.x
            }
            for y in crop.line_range
            if is_rendered_line(y)
        }
        return {y: starts for y, starts in places.items() if starts}

    def _fill(self, line: dict[int, Strip | None], unseen: Places, y: int, seen: Region, strip: Strip) -> None:
        cuts = [cut for cut in self.cuts[y] if seen.x <= cut <= seen.right]
        for cut, part in zip(cuts, strip.divide([cut - seen.x for cut in cuts[1:]]), strict=False):
            if line.get(cut) is None:
                line[cut] = part
                unseen[y].discard(cut)
        if not unseen[y]:
            del unseen[y]


def _begins_in(seen: Region, starts: set[int]) -> bool:
    return any(seen.x <= start < seen.right for start in starts)
