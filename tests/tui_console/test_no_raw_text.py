"""No string from outside may reach a widget but through the gate: a lint over the source of the console.

Whatever shows text takes a literal of ours, or Content that is known to come from `agent_text`, `agent_block`
or `system_text`: by the call itself, or by an annotation that the type checker has proven.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import agent_console.tui

TREE = Path(agent_console.tui.__file__).parent

GATES = {"agent_text", "agent_block", "system_text"}
PLAIN_GATES = {"safe_text", "safe_block", "shortened"}
SHOWABLE_TYPES = {"Content", "Text"}
PLAIN_TYPES = {"SafeText", "int", "float"}
AROUND_TYPES = {
    "None",
    "Sequence",
    "tuple",
    "list",
    "Iterable",
    "Iterator",
    "reactive",
    "ClassVar",
    "Final",
    "Self",
}

FORBIDDEN_CALLS = {"from_markup", "from_rich_text", "from_ansi", "from_text", "render_str"}
FORBIDDEN_WIDGETS = {"Markdown", "MarkdownViewer", "RichLog", "Log", "Pretty"}
# Methods of str and Content whose result holds what they are given.
COMBINING = {"format", "format_map", "replace", "join", "append", "append_text"}
RENDERERS = {"render", "render_label", "__rich__"}

EVERY = -1
# What shows text: the position of the text among the arguments (or all of them) and its keywords.
WIDGETS: dict[str, tuple[int, tuple[str, ...]]] = {
    **dict.fromkeys(("Static", "Label"), (0, ("content",))),
    **dict.fromkeys(("Button", "Checkbox", "RadioButton", "ToggleButton", "Tab", "Tree"), (0, ("label",))),
    **dict.fromkeys(("Option", "Selection"), (0, ("prompt",))),
    **dict.fromkeys(("Collapsible", "TabPane"), (0, ("title",))),
    **dict.fromkeys(("Input", "TextArea", "MaskedInput"), (99, ("placeholder", "tooltip"))),
    "Link": (0, ("text",)),
    "Digits": (0, ("value",)),
    "Tooltip": (0, ("content",)),
}
METHODS: dict[str, tuple[int, tuple[str, ...]]] = {
    "notify": (0, ("message", "title")),
    "update": (0, ("content",)),
    "set_label": (0, ("label",)),
    "add_option": (0, ("option",)),
    "add_leaf": (0, ("label",)),
    "add_tab": (0, ("tab",)),
    "add_row": (EVERY, ("label",)),
    "add_column": (0, ("label",)),
    "add_columns": (EVERY, ()),
    "update_cell": (2, ("value",)),
    "update_cell_at": (1, ("value",)),
}
ATTRIBUTES = {"border_title", "border_subtitle", "tooltip", "placeholder", "title", "sub_title"}
# They read no markup, so gated plain text is enough.
PLAIN_MAKERS: dict[str, tuple[int, tuple[str, ...]]] = {
    **dict.fromkeys(("Content", "Text", "Segment", "styled"), (0, ("text",))),
    "assemble": (EVERY, ()),
}
# They only lay out, cut or guard what already is Content or a line on its way to the terminal.
BEHIND_THE_GATE = ("agent_text.py", "terminal/", "widgets/virtual_table_lines.py")

Scope = Sequence[ast.AST]


class Finding(NamedTuple):
    where: str
    what: str


class Known:
    """What the annotations of the whole tree say: which functions return, which fields hold showable things."""

    def __init__(self, modules: Mapping[str, ast.Module]) -> None:
        self.returns: dict[str, list[ast.expr | None]] = {}
        self.fields: dict[str, list[ast.expr]] = {}
        for module in modules.values():
            for node in ast.walk(module):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    self.returns.setdefault(node.name, []).append(node.returns)
                elif isinstance(node, ast.AnnAssign):
                    self.fields.setdefault(_last_name(node.target), []).append(node.annotation)

    def call_is(self, name: str, types: set[str]) -> bool:
        return name in self.returns and all(_is_of(types, returned) for returned in self.returns[name])

    def field_is(self, name: str, types: set[str]) -> bool:
        if name in self.fields:
            return all(_is_of(types, annotation) for annotation in self.fields[name])
        return self.call_is(name, types)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_of(types: set[str], annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    if annotation is None:
        return False
    names = {_last_name(node) for node in ast.walk(annotation) if isinstance(node, ast.Name | ast.Attribute)}
    return bool(names & types) and names <= types | AROUND_TYPES


class Judge:
    """Says of an expression whether it may be shown. `plain` also lets gated text through that is no Content."""

    def __init__(self, known: Known, *, plain: bool) -> None:
        self.known = known
        self.plain = plain
        self.types = SHOWABLE_TYPES | PLAIN_TYPES if plain else SHOWABLE_TYPES
        self.gates = GATES | PLAIN_GATES if plain else GATES

    def allows(self, node: ast.expr, scope: Scope, seen: frozenset[str] = frozenset()) -> bool:
        match node:
            case ast.Constant():
                return True
            case ast.Name(id=name):
                return name in seen or self._name(name, scope, seen | {name})
            case ast.Attribute(attr=name):
                return (self.plain and name == "plain") or self.known.field_is(name, self.types)
            case ast.Call():
                return self._call(node, scope, seen)
            case ast.BinOp(op=ast.Mult(), left=ast.Constant(value=str())):
                return self.plain
            case ast.JoinedStr(values=parts):
                return self.plain and all(self.allows(part, scope, seen) for part in parts)
            case ast.IfExp():
                return self.allows(node.body, scope, seen) and self.allows(node.orelse, scope, seen)
            case ast.ListComp() | ast.GeneratorExp():
                return self.allows(node.elt, [*scope, node], seen)
            case ast.BinOp() | ast.BoolOp() | ast.Tuple() | ast.List():
                parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
                return all(self.allows(part, scope, seen) for part in parts)
            case ast.Subscript() | ast.Starred() | ast.Await() | ast.NamedExpr() | ast.FormattedValue():
                return self.allows(node.value, scope, seen)
        return False

    def _call(self, node: ast.Call, scope: Scope, seen: frozenset[str]) -> bool:
        name = _last_name(node.func)
        # What is given to these makers is judged where they are called.
        if name in self.gates or name in PLAIN_MAKERS or self.known.call_is(name, self.types):
            return True
        gated = all(self.allows(arg, scope, seen) for arg in node.args)
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if _last_name(owner) in SHOWABLE_TYPES:
                return True
            literal = isinstance(owner, ast.Constant) and not self.plain
            return not literal and (gated or name not in COMBINING) and self.allows(owner, scope, seen)
        return self.plain and (name == "len" or (name == "str" and gated))

    def _name(self, name: str, scope: Scope, seen: frozenset[str]) -> bool:
        for depth in range(len(scope), 0, -1):
            bindings = list(_bindings(name, scope[depth - 1]))
            if bindings:
                return all(
                    _is_of(self.types, what) if is_type else self.allows(what, scope[:depth], seen)
                    for is_type, what in bindings
                )
        return False


def _bindings(name: str, scope: ast.AST) -> Iterator[tuple[bool, ast.expr]]:
    """Each way a name gets its value there: (True, its annotation) or (False, the expression)."""
    unknown = ast.Lambda(ast.arguments([], [], None, [], [], None, []), ast.Constant(None))
    for node in ast.walk(scope):
        match node:
            case ast.arg(arg=arg, annotation=annotation) if arg == name:
                yield True, annotation or unknown
            case ast.AnnAssign(target=ast.Name(id=target), annotation=annotation) if target == name:
                yield True, annotation
            case ast.Assign(targets=targets, value=value):
                yield from ((False, value) for target in targets if _binds(target, name))
            case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                yield from ((False, value) for _ in range(_binds(target, name)))
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                yield from ((False, value) for _ in range(_binds(target, name)))
            case ast.withitem(optional_vars=ast.expr() as target) if _binds(target, name):
                yield False, unknown


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))


class Lint(ast.NodeVisitor):
    def __init__(self, path: str, known: Known) -> None:
        self.path = path
        self.scope: list[ast.AST] = []
        self.bases: list[str] = []
        self.findings: list[Finding] = []
        self.strict, self.plain = Judge(known, plain=False), Judge(known, plain=True)

    def found(self, node: ast.expr | ast.stmt | ast.keyword, what: str) -> None:
        self.findings.append(Finding(f"{self.path}:{node.lineno}", what))

    def visit_Module(self, node: ast.Module) -> None:
        self.scope.append(node)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bases.append(next((name for base in node.bases if (name := _last_name(base)) in WIDGETS), ""))
        self.generic_visit(node)
        self.bases.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name in RENDERERS and (node.returns is None or "str" in ast.unparse(node.returns)):
            self.found(node, f"{node.name} must return Content: a str is read as markup")
        self.scope.append(node)
        self.generic_visit(node)
        self.scope.pop()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name in FORBIDDEN_WIDGETS and (node.module or "").startswith("textual"):
                self.found(node, f"{alias.name} shows raw text")

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr in ATTRIBUTES:
                self.judge(self.strict, node.value, f".{target.attr}")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _last_name(node.func)
        if name in FORBIDDEN_CALLS or (name in FORBIDDEN_WIDGETS and isinstance(node.func, ast.Attribute)):
            self.found(node, f"{name} reads markup or shows raw text")
        for keyword in node.keywords:
            if keyword.arg == "markup" and not (
                isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            ):
                self.found(keyword.value, "markup is never switched on")
        if isinstance(node.func, ast.Name | ast.Attribute):
            self.judge_arguments(node, name)
        self.generic_visit(node)

    def judge_arguments(self, node: ast.Call, name: str) -> None:
        is_method = isinstance(node.func, ast.Attribute)
        if name == "__init__" and self.bases and self.bases[-1]:
            name = self.bases[-1]
        taker = WIDGETS.get(name) or (METHODS.get(name) if is_method else None)
        # A notice that is told to read no markup takes text that has passed the gate, as it is.
        judge = self.plain if name == "notify" and _reads_no_markup(node) else self.strict
        if taker is None and name in PLAIN_MAKERS and not self.path.startswith(BEHIND_THE_GATE):
            taker, judge = PLAIN_MAKERS[name], self.plain
        if taker is None:
            return
        position, keywords = taker
        texts = node.args if position == EVERY else node.args[position : position + 1]
        for text in [*texts, *(keyword.value for keyword in node.keywords if keyword.arg in keywords)]:
            self.judge(judge, text, f"{name}(…)")

    def judge(self, judge: Judge, text: ast.expr, place: str) -> None:
        if not judge.allows(text, self.scope):
            self.found(text, f"{place} is given `{ast.unparse(text)}`, which did not pass the gate")


def _reads_no_markup(node: ast.Call) -> bool:
    return any(
        keyword.arg == "markup" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        for keyword in node.keywords
    )


def findings_in(sources: Mapping[str, str]) -> list[Finding]:
    modules = {path: ast.parse(source) for path, source in sources.items()}
    known = Known(modules)
    found: list[Finding] = []
    for path, module in modules.items():
        lint = Lint(path, known)
        lint.visit(module)
        found += lint.findings
    return found


def test_no_raw_text_reaches_a_widget() -> None:
    sources = {path.relative_to(TREE).as_posix(): path.read_text("utf-8") for path in TREE.rglob("*.py")}

    found = findings_in(sources)

    assert not found, "\n".join(f"tui/{where}: {what}" for where, what in found)


@pytest.mark.parametrize(
    "bad",
    [
        "Content.from_markup('[b]x')",
        "Text.from_markup(name)",
        "Static(f'{name}')",
        "Static(agent.name)",
        "Static(content=agent.name)",
        "Label(str(error))",
        "Label('failed: ' + error)",
        "Label('failed: {}'.format(error))",
        "Button(label)",
        "Option(prompt=name)",
        "Static(words)",
        "Static('failed: %s' % error)",
        "words = 'failed: {}'\nStatic(words.format(error))",
        "Static(agent_text(a).append(b))",
        "Content('{}'.format(name))",
        "Segment(name * 2)",
        "Static(x, markup=True)",
        "DataTable(markup=flag)",
        "app.notify(f'{name} is gone')",
        "app.notify('gone', title=name)",
        "self.query_one(Static).update(name)",
        "table.add_row(agent_text(a), b)",
        "table.add_row(*cells)",
        "pane.border_title = name",
        "widget.tooltip = f'{name}'",
        "Content(name)",
        "Content.styled(name, 'bold')",
        "Content.assemble('by ', (name, 'bold'))",
        "Segment(f'{name}')",
        "from textual.widgets import Markdown",
        "from textual.widgets import RichLog",
        "class A(Widget):\n def render(self) -> str: return 'x'",
        "class A(Static):\n def __init__(self, name: str) -> None: super().__init__(name)",
        "def f(name: str): yield Static(name)",
        "def f(name): yield Static(name)",
        "def f(words: list[str]):\n for word in words: yield Static(word)",
        "def f():\n text = agent_text(a)\n text = a\n yield Static(text)",
        "def f(text: SafeText): yield Static(text)",
        "def g() -> str: ...\nStatic(g())",
    ],
)
def test_raw_text_is_found(bad: str) -> None:
    found = findings_in({"panes/bad.py": bad})

    assert [finding.where.partition(":")[0] for finding in found][:1] == ["panes/bad.py"]


@pytest.mark.parametrize(
    "good",
    [
        "Static('Nothing found')",
        "Static()",
        "Static(agent_text(agent.name), markup=False)",
        "Static(agent_text(name).stylize('bold'))",
        "Static(system_text('by ') + agent_text(name))",
        "Label(agent_text(name) if name else 'nobody')",
        "Static(Content.assemble('by ', (agent_text(name), 'bold')))",
        "table.add_row(*(agent_text(cell) for cell in cells))",
        "pane.border_title = agent_text(name)",
        "bar.update(progress=3)",
        "Segment(' ' * width)",
        "Segment(safe_text(name)[:5].ljust(width))",
        "Content(f'{len(rows)} rows')",
        "def f(text: Content): yield Static(text)",
        "def f(cells: Sequence[Content]): table.add_row(*cells)",
        "def f(lines: tuple[Content, ...]):\n for line in lines: yield Static(line)",
        "def f():\n text = agent_text(a)\n text = text + agent_text(b)\n yield Static(text)",
        "def title(a: Agent) -> Content: ...\ndef f(a: Agent): yield Static(title(a))",
        "class Row:\n name: Content\ndef f(row: Row): yield Static(row.name)",
        "class A(Widget):\n def render(self) -> Content: return agent_text(self.name)",
    ],
)
def test_gated_text_is_let_through(good: str) -> None:
    assert findings_in({"panes/good.py": good}) == []


def test_a_function_of_another_module_is_known_by_its_annotation() -> None:
    sources = {"rows.py": "def cell(a: Agent) -> Content: ...", "panes/a.py": "Static(cell(a))"}

    assert findings_in(sources) == []


def test_a_finding_tells_what_and_where() -> None:
    found = findings_in({"panes/a.py": "\n\nStatic(agent.name)"})

    assert found == [Finding("panes/a.py:3", "Static(…) is given `agent.name`, which did not pass the gate")]
