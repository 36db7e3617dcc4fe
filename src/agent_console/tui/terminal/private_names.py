"""Every private name of Textual that the console touches, in one place.

Textual is pinned to one version because of these. The test beside this list fails when one of them moves or
changes its signature, when the body of a method we mirror changes, and when a file touches a name that is not
listed.
"""

from typing import NamedTuple


class PrivateMethod(NamedTuple):
    """A method we override, call, or build with; its class may be what is private. `mirrored` is the digest of a
    body that our own code repeats or counts on."""

    owner: str
    name: str
    signature: str
    why: str
    mirrored: str = ""


class PrivateAttribute(NamedTuple):
    """An attribute we read."""

    owner: str
    name: str
    why: str


_APP = "textual.app:App"
_SCREEN = "textual.screen:Screen"
_DRIVER = "textual.drivers.linux_driver:LinuxDriver"
_FOOTER = "textual.widgets._footer:Footer"
_REACTIVE = "textual.reactive:Reactive"
_RENDER_SEGMENTS = "(self, console: 'Console') -> 'str'"

METHODS = (
    PrivateMethod(
        _APP,
        "_display",
        "(self, screen: 'Screen', renderable: 'RenderableType | None') -> 'None'",
        "the one place every update passes on its way to the driver",
        mirrored="4b78dff6669a455c",
    ),
    PrivateMethod(_APP, "_fatal_error", "(self) -> 'None'", "prints local variables unless replaced"),
    PrivateMethod(_APP, "_close_messages_no_wait", "(self) -> 'None'", "ends the app after a crash"),
    PrivateMethod(
        _APP,
        "_register",
        "(self, parent: 'DOMNode', *widgets: 'Widget', before: 'int | None' = None, "
        "after: 'int | None' = None, cache: 'dict[tuple, RulesMap] | None' = None) -> 'list[Widget]'",
        "every screen passes it once",
    ),
    PrivateMethod(
        _APP,
        "on_event",
        "(self, event: 'events.Event') -> 'None'",
        "where a key begins its way, and where it comes up to",
        mirrored="3dbf14d694916fe3",
    ),
    PrivateMethod(
        _APP,
        "_check_bindings",
        "(self, key: 'str', priority: 'bool' = False) -> 'bool'",
        "whose turn it is when several have bound a key",
        mirrored="c9643552d942518a",
    ),
    PrivateMethod(_SCREEN, "_clear_tooltip", "(self) -> 'None'", "a key takes the tooltip away"),
    PrivateMethod(
        "textual._compositor:Compositor",
        "_render_chops",
        "(self, crop: 'Region', is_rendered_line: 'Callable[[int], bool]') -> 'Sequence[Mapping[int, Strip]]'",
        "renders what can't be seen",
        mirrored="ca8c3359d7afd017",
    ),
    PrivateMethod(
        "textual._compositor:Compositor",
        "_get_renders",
        "(self, crop: 'Region | None' = None) -> 'Iterable[tuple[Region, Region, list[Strip]]]'",
        "the widgets from front to back, each rendered when its turn comes",
        mirrored="8ac93299aa5d3bef",
    ),
    PrivateMethod(
        "textual._styles_cache:StylesCache",
        "get_inner_outer",
        "(cls, base_background: 'Color', background: 'Color') -> 'tuple[Style, Style]'",
        "remembers every store of painted lines it was asked by",
        mirrored="d2509f3e796680df",
    ),
    PrivateMethod(
        "textual._compositor:CompositorUpdate",
        "render_segments",
        _RENDER_SEGMENTS,
        "how a frame made ready reaches the driver",
    ),
    PrivateMethod(
        "textual._compositor:LayoutUpdate",
        "__init__",
        "(self, strips: 'list[Iterable[Strip]]', region: 'Region') -> 'None'",
        "an update of the whole screen",
    ),
    PrivateMethod(
        "textual._compositor:LayoutUpdate",
        "render_segments",
        _RENDER_SEGMENTS,
        "what goes where in an update of the whole screen",
        mirrored="ff329c722506c983",
    ),
    PrivateMethod(
        "textual._compositor:ChopsUpdate",
        "__init__",
        "(self, chops: 'Sequence[Mapping[int, Strip | None]]', spans: 'list[tuple[int, int, int]]', "
        "chop_ends: 'list[list[int]]') -> 'None'",
        "an update of parts of the screen",
    ),
    PrivateMethod(
        "textual._compositor:ChopsUpdate",
        "render_segments",
        _RENDER_SEGMENTS,
        "what goes where in an update of parts of the screen",
        mirrored="4c1cdb567e0b8354",
    ),
    PrivateMethod(
        "textual._compositor:InlineUpdate",
        "__init__",
        "(self, strips: 'list[Strip]', clear: 'bool' = False) -> 'None'",
        "an update below the prompt, guarded but not differenced",
    ),
    PrivateMethod(
        _DRIVER,
        "start_application_mode",
        "(self)",
        "enters the alternate screen with a write of its own",
        mirrored="7c41f5ba11a8ef05",
    ),
    PrivateMethod(
        _DRIVER,
        "stop_application_mode",
        "(self) -> 'None'",
        "unsets every mode but the mouse's pixels",
        mirrored="9a7e99c8d4bdbd3b",
    ),
    PrivateMethod(
        _FOOTER,
        "compose",
        "(self) -> 'ComposeResult'",
        "makes the keys in the order in which ours are counted",
        mirrored="8514ae6622cb1844",
    ),
    PrivateMethod(
        _FOOTER,
        "bindings_changed",
        "(self, screen: 'Screen') -> 'None'",
        "when a footer is made anew",
        mirrored="eb88714081bd2305",
    ),
    PrivateMethod(
        "textual.widgets._footer:FooterKey",
        "__init__",
        "(self, key: 'str', key_display: 'str', description: 'str', action: 'str', disabled: 'bool' = False, "
        "tooltip: 'str' = '', classes='') -> 'None'",
        "a key of the footer, whose words we change",
    ),
    PrivateMethod(
        _REACTIVE,
        "_check_watchers",
        "(obj: 'Reactable', name: 'str', old_value: 'Any') -> 'None'",
        "forgets who has closed, but only when the attribute is next changed",
        mirrored="7264430bbdce0b5a",
    ),
)

ATTRIBUTES = (
    PrivateAttribute(_APP, "_driver", "whether an update would be written, and who holds the terminal"),
    PrivateAttribute(_APP, "_running", "whether an update would be written"),
    PrivateAttribute(_APP, "_closed", "whether an update would be written"),
    PrivateAttribute(_APP, "_batch_count", "whether an update would be written"),
    PrivateAttribute(_APP, "_exception", "the error that ended the app"),
    PrivateAttribute(_APP, "_loop", "to end the app from a signal handler"),
    PrivateAttribute(_APP, "_keymap", "which keys were remapped"),
    PrivateAttribute("textual.dom:DOMNode", "_bindings", "the keys of one widget"),
    PrivateAttribute("textual.widget:Widget", "_styles_cache", "the painted lines of one widget"),
    PrivateAttribute(_FOOTER, "_bindings_ready", "whether there is anything to show yet"),
    PrivateAttribute(_REACTIVE, "__watchers", "who watches an attribute, of the theme a draft that was closed"),
    PrivateAttribute(_SCREEN, "_compositor", "to paint what lies in front only"),
    PrivateAttribute(_DRIVER, "_mouse_pixels", "a mode Textual sets and never unsets"),
    PrivateAttribute(_DRIVER, "_writer_thread", "whether a frame is on its way"),
    PrivateAttribute("textual.drivers._writer_thread:WriterThread", "_queue", "what it has not taken yet"),
)
