"""The looks one can choose from. State never depends on them: it is a glyph and a word everywhere.

What is muted has a colour of its own: an opacity would make it unreadable on the cursor's line.
"""

from textual.theme import Theme

DARK = Theme(
    name="console-dark",
    primary="#5fafd7",
    secondary="#87afaf",
    accent="#d7af5f",
    warning="#d7af5f",
    error="#ff6b6b",
    success="#87d787",
    foreground="#d0d0d0",
    background="#121212",
    surface="#1c1c1c",
    panel="#262626",
    dark=True,
    variables={"foreground-muted": "#a8a8a8"},
)
LIGHT = Theme(
    name="console-light",
    primary="#005f87",
    secondary="#3a5f5f",
    accent="#875f00",
    warning="#875f00",
    error="#af0000",
    success="#005f00",
    foreground="#1c1c1c",
    background="#fafafa",
    surface="#f0f0f0",
    panel="#e4e4e4",
    dark=False,
    variables={"foreground-muted": "#505050"},
)

THEMES: dict[str, Theme] = {"dark": DARK, "light": LIGHT}

# mono is the dark theme without its colours: the command line asks Textual for that before it is imported, and
# a console that runs takes them out of every line.
MONO = "mono"
NAMES = {"dark": DARK.name, MONO: DARK.name, "light": LIGHT.name, "ansi": "ansi-dark"}


def theme_for(name: str) -> str:
    return NAMES.get(name, DARK.name)
