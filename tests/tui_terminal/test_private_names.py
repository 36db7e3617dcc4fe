"""The private names of Textual that we touch are where they were, and no others are touched."""

import ast
import hashlib
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from agent_console.tui import terminal
from agent_console.tui.terminal.private_names import ATTRIBUTES, METHODS, PrivateAttribute, PrivateMethod

SOURCES = sorted(Path(str(terminal.__file__)).parent.glob("*.py"))
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

    assert any(re.search(rf"self\.{attribute.name}(: [^=]+)? = ", source) for source in sources)


def test_no_private_name_is_touched_that_is_not_listed() -> None:
    listed = {name.name for name in METHODS} | {name.name for name in ATTRIBUTES}
    trees = [ast.parse(source.read_text(encoding="utf-8")) for source in SOURCES]

    touched = set[str]().union(*map(private_names_used, trees))
    own = set[str]().union(*map(private_names_made, trees))

    assert touched - own - PUBLIC_IN_SPITE_OF_ITS_NAME <= listed


def private_names_used(tree: ast.AST) -> set[str]:
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    }


def private_names_made(tree: ast.AST) -> set[str]:
    """What our own classes define, except where they replace something of Textual's."""
    made = {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return (made | defined) - {method.name for method in METHODS}
