"""The private names of Textual that we touch are where they were, and no others are touched."""

import ast
import hashlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from agent_console import tui
from agent_console.tui.terminal.private_names import ATTRIBUTES, METHODS, PrivateAttribute, PrivateMethod

SOURCES = sorted(Path(str(tui.__file__)).parent.rglob("*.py"))
LISTED = {name.name for name in METHODS} | {name.name for name in ATTRIBUTES}
PUBLIC_IN_SPITE_OF_ITS_NAME = {"_exit", "_replace"}


def owner_of(name: PrivateMethod | PrivateAttribute) -> type:
    module, _, owner = name.owner.partition(":")
    found = getattr(import_module(module), owner)
    assert inspect.isclass(found)
    return found


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.owner}.{method.name}")
def test_methods_keep_their_signature(method: PrivateMethod) -> None:
    found = getattr(owner_of(method), method.name)

    assert str(inspect.signature(found)) == method.signature


@pytest.mark.parametrize(
    "method",
    [method for method in METHODS if method.mirrored],
    ids=lambda method: f"{method.owner}.{method.name}",
)
def test_methods_we_repeat_keep_their_body(method: PrivateMethod) -> None:
    body = inspect.getsource(getattr(owner_of(method), method.name))

    assert hashlib.sha256(body.encode()).hexdigest().startswith(method.mirrored)


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda attribute: f"{attribute.owner}.{attribute.name}")
def test_attributes_are_still_set_at_the_start(attribute: PrivateAttribute) -> None:
    sources = [
        inspect.getsource(parent)
        for parent in owner_of(attribute).__mro__
        if parent.__module__.startswith("textual.")
    ]

    module = inspect.getsource(import_module(owner_of(attribute).__module__))
    is_set = any(re.search(rf"self\.{attribute.name}(: [^=]+)? = ", source) for source in sources)
    assert is_set or f'setattr(obj, "{attribute.name}", ' in module


def test_no_private_name_is_touched_that_is_not_listed() -> None:
    trees = [ast.parse(source.read_text(encoding="utf-8")) for source in SOURCES]

    touched = set[str]().union(*map(private_names_used, trees))
    own = set[str]().union(*map(private_names_made, trees))

    assert touched - own - PUBLIC_IN_SPITE_OF_ITS_NAME <= LISTED


def test_nothing_is_taken_from_a_private_module_that_is_not_listed() -> None:
    trees = (ast.parse(source.read_text(encoding="utf-8")) for source in SOURCES)
    taken = set[str]().union(*map(names_of_private_modules, trees))

    assert taken <= {name.owner for name in METHODS} | {name.owner for name in ATTRIBUTES}


def test_no_class_of_ours_has_a_name_of_its_parents_for_something_of_its_own() -> None:
    """What is one of our names elsewhere may be one of Textual's here."""
    shared = {
        (ours.__name__, name)
        for ours in every_class_of_ours()
        for theirs in ours.__mro__
        if theirs.__module__.startswith("textual.")
        for name in names_in(ours) & names_of_textual(theirs)
    }

    assert {(owner, name) for owner, name in shared if name not in LISTED} == set()


def private_names_used(tree: ast.AST) -> set[str]:
    names = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    }
    return names | {name for node in ast.walk(tree) if (name := asked_by_name(node)).startswith("_")}


def asked_by_name(node: ast.AST) -> str:
    match node:
        case ast.Call(
            func=ast.Name(id="getattr" | "hasattr" | "setattr"), args=[_, ast.Constant(value=str(name)), *_]
        ):
            return name
    return ""


def private_names_made(tree: ast.AST) -> set[str]:
    """What our own classes define, except where they replace something of Textual's."""
    made = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
                made.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                made.add(name)
    return made - {method.name for method in METHODS}


def names_of_private_modules(tree: ast.AST) -> set[str]:
    return {
        f"{node.module}:{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and re.match(r"textual\b.*\._", node.module or "")
        for alias in node.names
    }


def every_class_of_ours() -> Iterator[type]:
    for found in pkgutil.walk_packages(tui.__path__, "agent_console.tui."):
        module = import_module(found.name)
        yield from (one for one in vars(module).values() if inspect.isclass(one) and one.__module__ == found.name)


def names_in(owner: type) -> set[str]:
    return set(re.findall(r"(?:self\.|cls\.|super\(\)\.|def )(_[a-z]\w*)", inspect.getsource(owner)))


@cache
def names_of_textual(owner: type) -> frozenset[str]:
    stored = re.findall(r"self\.(_[a-z]\w*)(?:: [^=\n]+)? = ", inspect.getsource(owner))
    return frozenset(stored) | {name for name in vars(owner) if re.match("_[a-z]", name)}
