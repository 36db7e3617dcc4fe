"""Paints what lies in front and stops when nothing behind it can be seen.

Textual goes through the widgets from front to back and keeps for each place the first it finds there, but it
renders all of them: for one line that a key changes in a list, every container behind the list as well.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip

Chops = list[dict[int, Strip | None]]


class FrontFirst(Compositor):
    def _render_chops(
        self, crop: Region, is_rendered_line: Callable[[int], bool]
    ) -> Sequence[Mapping[int, Strip]]:
        chops: Chops = [dict.fromkeys(cuts[:-1]) for cuts in self.cuts]
        unseen = self._places(crop, is_rendered_line)
        for region, clip, strips in self._get_renders(crop):
            self._fill(chops, unseen, region.intersection(clip), strips, is_rendered_line)
            if not unseen:
                break
        # As Textual's own does: where nobody looks there is none.
        return cast("Sequence[Mapping[int, Strip]]", chops)

    def _places(self, crop: Region, is_rendered_line: Callable[[int], bool]) -> set[tuple[int, int]]:
        """Line and column of every piece of a line that has to be painted."""
        return {
            (y, start)
            for y in crop.line_range
            if is_rendered_line(y)
            for start, end in zip(self.cuts[y], self.cuts[y][1:], strict=False)
            if start < crop.right and end > crop.x
        }

    def _fill(
        self,
        chops: Chops,
        unseen: set[tuple[int, int]],
        region: Region,
        strips: Sequence[Strip],
        is_rendered_line: Callable[[int], bool],
    ) -> None:
        first, last = region.column_span
        for y, strip in zip(region.line_range, strips, strict=False):
            if not is_rendered_line(y):
                continue
            line = chops[y]
            cuts = [cut for cut in self.cuts[y] if first <= cut <= last]
            if not any(line.get(cut) is None for cut in cuts[:-1]):
                continue
            for cut, part in zip(cuts, strip.divide([cut - region.x for cut in cuts[1:]]), strict=False):
                if line.get(cut) is None:
                    line[cut] = part
                    unseen.discard((y, cut))
