"""Hints of the engine: no command of the command line in the engine, and a command for every action."""

from __future__ import annotations

import ast
import os
import pickle
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from inspect import signature
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import pytest

from storage import Consumer, Store
from storage.actions import Action, Hint, Keyword, inspect, resume
from txnctl.cli.click_commands import Command
from txnctl.cli.main import root
from txnctl.generate.tree import pages
from txnctl.output import shell

ENGINE = Path(__file__).parents[2] / "storage"
TREES = {path: ast.parse(path.read_text()) for path in sorted(ENGINE.rglob("*.py"))}

ON_DISK = {"subscriptions ack --force"}
"""Texts of the audit trail, which are stored."""

STORE = Store(cast(Any, SimpleNamespace(connection=None)))
"""Never opened: the methods have the signatures of any store."""


def calls_of(name: str) -> Iterator[ast.Call]:
    """Calls of a class of `storage.actions` in the engine."""
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield node


def texts(tree: ast.AST) -> Iterator[str]:
    """String literals of a module without docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def constant(node: ast.expr) -> Any:
    """The value of a literal; a number for arithmetic, and a name for all other expressions."""
    if isinstance(node, ast.BinOp):
        return 60
    return node.value if isinstance(node, ast.Constant) else "orders"


def call_of(node: ast.Call) -> tuple[str, int, tuple[tuple[str, Any], ...]]:
    """The call of an action, the number of its arguments, and its options."""
    options = tuple((option.arg or "", constant(option.value)) for option in node.keywords)
    arguments = [argument for argument in node.args[1:] if not isinstance(argument, ast.Starred)]
    assert isinstance(node.args[0], ast.Constant), ast.unparse(node)
    return constant(node.args[0]), len(arguments), options


CALLS = sorted({call_of(node) for node in calls_of("Action")}, key=str)


PROCESS_WORDS = {
    "resume_process": ["kill", "-CONT", "42"],
    "inspect_process": ["ps", "-fp", "42"],
    "terminate_session": ["psql", "-c", "SELECT pg_terminate_backend(42)"],
}
"""Actions that are no calls of the engine."""


def method_of(call: str) -> Any:
    """The method that an action names."""
    if "." in call:
        return attrgetter(call.partition(".")[2])(Consumer if call.startswith("consumer.") else STORE)
    return getattr(STORE, call, None) or getattr(STORE.reports, call)


def sample(call: str, arguments: int, options: tuple[tuple[str, Any], ...]) -> Action:
    """The action with arguments that the method accepts."""
    if call in PROCESS_WORDS:
        return Action(call, 42)
    bound = signature(method_of(call)).bind_partial(*["orders"] * arguments, **dict(options))
    values = {"txn": "0:7", "message_ids": "1:0", "session": "00000000-1-1-0000000000000000"}
    return Action(
        call, *[values.get(name, "orders") for name in [*bound.arguments][:arguments]], **dict(options)
    )


def parse(words: list[str]) -> None:
    """Parse a command line, whole as it stands."""
    with suppress(click.exceptions.Exit):
        context = root().make_context(words[0], words[1:])
        while isinstance(context.command, click.Group):
            rest = [*context._protected_args, *context.args]
            name, command, rest = context.command.resolve_command(context, rest)
            assert command is not None
            context = command.make_context(name, rest, parent=context)


def test_no_text_of_the_engine_names_a_command() -> None:
    """Neither with the program nor, in backticks, without; nor an option."""
    leaves = [page for page in pages() if isinstance(page.command, Command)]
    titles = "|".join([re.escape(page.title) for page in leaves])
    words = "|".join([re.escape(" ".join(page.path[1:])) for page in leaves])
    options = {
        name for page in leaves for option in page.command.params for name in option.opts if name[:2] == "--"
    }
    names = re.compile(rf"\b(?:{titles})\b|`(?:{words})\b|(?<![\w-])(?:{'|'.join(sorted(options))})\b")
    found = {
        f"{path.name}: {text}"
        for path, tree in TREES.items()
        for text in texts(tree)
        if names.search(text) and text not in ON_DISK
    }
    assert found == set()


@pytest.mark.parametrize(("call", "arguments", "options"), CALLS)
def test_an_action_is_a_call_of_the_api_and_a_command(
    call: str, arguments: int, options: tuple[tuple[str, Any], ...]
) -> None:
    """The method takes the arguments, and the command line accepts the command."""
    words = shlex.split(shell.command(sample(call, arguments, options)))
    if call in PROCESS_WORDS:
        assert words == PROCESS_WORDS[call]
    elif call == "list_ended_transactions":
        parse(["txnctl", "transactions", "list", *words])
    else:
        parse(words if words[0] == "txnctl" else ["txnctl", *words])


def test_every_command_is_in_use() -> None:
    """The table of the shell has no call that no hint names."""
    assert {call for call, _, _ in CALLS} == set(shell.COMMANDS)


def test_a_keyword_is_an_option() -> None:
    """Of a command."""
    options = {name for page in pages() for option in page.command.params for name in option.opts}
    names = {constant(node.args[0]) for node in calls_of("Keyword") if isinstance(node.args[0], ast.Constant)}
    assert len(names) > 5
    assert {shell.option(Keyword(name)) for name in names} <= options


def test_a_wrong_command_is_refused() -> None:
    """By the parser of these tests."""
    for words in (["transactions", "abbort"], ["transactions", "abort", "0:7", "--wet-run"]):
        with pytest.raises(click.UsageError):
            parse(["txnctl", *words])


def test_a_hint_is_readable_in_python() -> None:
    """As a text with calls and keyword arguments; also from a different process."""
    abort = Action("store.admin.transactions.abort_transaction", "0:7", force=True)
    hint = Hint("Wait, raise {}, or `{}`.", Keyword("timeout"), abort)
    assert hint == "Wait, raise timeout, or `store.admin.transactions.abort_transaction('0:7', force=True)`."
    assert str(Action("resume_process", 42)) == "resume_process(42)"
    for each in (hint, pickle.loads(pickle.dumps(hint))):
        assert shell.spell(each) == "Wait, raise --timeout, or `txnctl transactions abort 0:7 --force`."


@pytest.mark.parametrize("build", [resume, inspect])
def test_a_process_of_another_host_is_told_there(build: Callable[..., Action]) -> None:
    """The command runs on its host; that of this host, or of a store in a directory, needs no host."""
    here = shell.command(build(42))
    assert not here.startswith("ssh")
    assert shell.command(build(42, os.uname().nodename)) == here
    assert shell.command(build(42, "db 2")) == f"ssh 'db 2' {here}"
    assert shell.worded_at(f"ssh 'db 2' {here}.", 0)


def test_braces_in_names_stay() -> None:
    """A part is text, and no template."""
    hint = Hint("{} is held.", "x{}")
    assert (hint, shell.spell(hint)) == ("x{} is held.", "x{} is held.")
