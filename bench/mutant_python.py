"""Mutants of Python code: one small thing at a time is changed in a function, or in the SQL that a module keeps.

Nothing is written: a function that lives already is given the code of the mutant, and a statement is made anew. So
it works only in a process that is thrown away afterwards.
"""

import ast
import copy
import gc
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType

from bench.mutant_sql import is_sql, sql_changes

# Each becomes its neighbour: a limit that lies one beside the right one is the usual mistake.
NEIGHBOURS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
CONDITIONS = ("where", "and_", "or_")
LEFT_OUT = ("where", "with_for_update", "order_by")
"""Calls in a chain that builds a statement, which is a statement without them too."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """`number` is its place among all changes of the function, the constant or the SQL function it is made in."""

    file: str
    place: str
    number: int
    was: str
    becomes: str

    @property
    def name(self) -> str:
        return f"{self.place}: {self.was} -> {self.becomes}"


class Change(ast.NodeTransformer):
    """Goes through a piece of code and makes the change of one number; all others are only counted and told."""

    def __init__(self, wanted: int = -1) -> None:
        self.wanted = wanted
        self.offered: list[tuple[str, str]] = []

    def offer(self, node: ast.AST, variant: ast.AST, was: str = "", becomes: str = "") -> ast.AST:
        self.offered.append((was or short(node), becomes or short(variant)))
        return variant if len(self.offered) - 1 == self.wanted else node

    def offer_all(self, node: ast.AST, variants: Iterator[ast.AST]) -> ast.AST:
        made = node
        for variant in variants:
            if (chosen := self.offer(node, variant)) is not node:
                made = chosen
        return made

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        variant = copy.deepcopy(node)
        variant.ops = [NEIGHBOURS[type(node.ops[0])](), *node.ops[1:]]
        self.generic_visit(node)
        return self.offer(node, variant)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        whole = copy.deepcopy(node)
        self.generic_visit(node)
        return self.offer_all(node, (_without(whole, place) for place in range(len(whole.values))))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return self.offer(node, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bool):
            return self.offer(node, ast.Constant(not node.value))
        if isinstance(node.value, int):
            return self.offer(node, ast.Constant(node.value + 1))
        if isinstance(node.value, str) and is_sql(node.value):
            made: ast.AST = node
            for was, becomes, text in sql_changes(node.value):
                if (chosen := self.offer(node, ast.Constant(text), was, becomes)) is not node:
                    made = chosen
            return made
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Words for people: which of them are right is not decided here."""
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        variant = copy.deepcopy(node)
        self.generic_visit(node)
        if isinstance(node.op, ast.Add | ast.Sub):
            variant.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            return self.offer(node, variant)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant):
            return node
        whole = copy.deepcopy(node)
        self.generic_visit(node)
        return self.offer(node, ast.Pass(), short(whole), "pass")

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return self.offer(node, ast.Pass(), short(node), "pass") if node.exc is not None else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        whole = copy.deepcopy(node)
        self.generic_visit(node)
        return self.offer(node, ast.Pass(), short(whole), "pass")

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._bare(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._bare(node)

    def _bare(self, node: ast.If | ast.IfExp) -> ast.AST:
        """A question without a comparison in it is asked the other way round."""
        variant = copy.deepcopy(node)
        self.generic_visit(node)
        if isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            return node
        variant.test = ast.UnaryOp(ast.Not(), variant.test)
        return self.offer(node, variant, f"if {short(node.test)}", f"if not {short(node.test)}")

    def visit_Call(self, node: ast.Call) -> ast.AST:
        whole = copy.deepcopy(node)
        self.generic_visit(node)
        called = whole.func.attr if isinstance(whole.func, ast.Attribute) else getattr(whole.func, "id", "")
        made: ast.AST = node
        if called in CONDITIONS and len(whole.args) > 1:
            for place, condition in enumerate(whole.args):
                variant = copy.deepcopy(whole)
                del variant.args[place]
                if (chosen := self.offer(node, variant, f"{called}(… {short(condition)} …)", "…")) is not node:
                    made = chosen
        elif called in LEFT_OUT and isinstance(whole.func, ast.Attribute):
            arguments = ", ".join(ast.unparse(argument) for argument in whole.args)
            if (chosen := self.offer(node, whole.func.value, f".{called}({arguments})", "left out")) is not node:
                made = chosen
        return made


def short(node: ast.AST) -> str:
    words = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return words if len(words) <= 110 else f"{words[:107]}…"


def _without(node: ast.BoolOp, place: int) -> ast.AST:
    left = [copy.deepcopy(value) for at, value in enumerate(node.values) if at != place]
    return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)


def functions_of(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def statements_of(tree: ast.Module) -> Iterator[tuple[str, ast.Assign | ast.AnnAssign]]:
    """The SQL that a module keeps under a name."""
    for name, node in _named(tree):
        words = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
        if any(isinstance(word, str) and is_sql(word) for word in words):
            yield name, node


def _named(tree: ast.Module) -> Iterator[tuple[str, ast.Assign | ast.AnnAssign]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node


def changed(piece: ast.AST, wanted: int = -1) -> Change:
    """Makes the change in the piece itself."""
    change = Change(wanted)
    if isinstance(piece, Function):
        piece.body = [change.visit(statement) for statement in piece.body]
    elif isinstance(piece, ast.Assign | ast.AnnAssign) and piece.value is not None:
        piece.value = change.visit(piece.value)
    return change


def python_mutants(file: str, source: str) -> Iterator[Mutant]:
    tree = ast.parse(source)
    for place, piece in [*functions_of(tree), *statements_of(tree)]:
        for number, (was, becomes) in enumerate(changed(copy.deepcopy(piece)).offered):
            yield Mutant(file, place, number, was, becomes)


def become(mutant: Mutant, module: ModuleType, source: str) -> None:
    """From now on this process runs the mutant."""
    tree = ast.parse(source)
    pieces: dict[str, ast.AST] = {**dict(statements_of(tree)), **dict(functions_of(tree))}
    changed(pieces[mutant.place], mutant.number)
    ast.fix_missing_locations(tree)
    if mutant.place in dict(functions_of(tree)):
        _swap_code(compile(tree, str(module.__file__), "exec"), mutant.place)
    else:
        _make_anew(tree, mutant.place, module)


def _swap_code(code: CodeType, place: str) -> None:
    (new,) = (inner for inner in _codes(code) if inner.co_qualname == place)
    gc.unfreeze()
    living = [
        function
        for function in gc.get_objects()
        if isinstance(function, FunctionType)
        and (function.__code__.co_filename, function.__code__.co_qualname) == (new.co_filename, place)
    ]
    if not living:
        raise LookupError(f"nobody has {place} of {new.co_filename}")
    for function in living:
        function.__code__ = new


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _make_anew(tree: ast.Module, place: str, module: ModuleType) -> None:
    """The statement itself, and what the module made of it; everywhere it was imported."""
    stale = {place}
    for name, node in _named(tree):
        used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        if not used & stale:
            continue
        stale.add(name)
        before = getattr(module, name)
        exec(compile(ast.Module([node], []), str(module.__file__), "exec"), vars(module))
        ours = [other for key, other in sys.modules.items() if key.startswith(("agent_console", "tests"))]
        for other in ours:
            if vars(other).get(name) is before:
                setattr(other, name, getattr(module, name))
