"""What a widget keeps of its painted lines goes when the widget goes.

Textual remembers the backgrounds of every widget by its whole store of lines, so that the last thousand stores are
held although nobody sees their widgets any more: megabytes, once screens were opened and closed for a while.
"""

from functools import lru_cache

from textual._styles_cache import StylesCache
from textual.color import Color
from textual.style import Style


class KeptLines(StylesCache):
    # Of Textual's own only the wrapper differs, which is what is to go.
    def get_inner_outer(  # type: ignore[override]
        self, base_background: Color, background: Color
    ) -> tuple[Style, Style]:
        return _backgrounds(base_background, background)


@lru_cache(1024)
def _backgrounds(base: Color, background: Color) -> tuple[Style, Style]:
    return Style(background=base + background), Style(background=base)
