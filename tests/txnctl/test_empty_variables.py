"""A variable that is set but empty is refused where its option refuses an empty value, on every command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest

from storage import Store
from tests.txnctl.conftest import Outcome
from txnctl.cli.click_commands import Command
from txnctl.cli.sample_values import sample_value
from txnctl.generate.environment import VARIABLES
from txnctl.generate.tree import Page, pages

TOPICS = ("orders",)

VARIABLE = re.compile(r"\[env: (TXNCTL_[A-Z_]+)")
"""A variable of an option or argument, in the help of that."""

FURTHER: dict[tuple[str, ...], tuple[str, ...]] = {("consume",): ("-s", "s")}
"""Words without which a command does not read its variable."""


def doors() -> list[tuple[Page, click.Parameter, str]]:
    """Every option and argument that has a variable."""
    return [
        (page, parameter, variable)
        for page in pages()
        if isinstance(page.command, Command)
        for parameter in page.command.get_params(page.context)
        for variable in VARIABLE.findall(getattr(parameter, "help", None) or "")
    ]


def line(page: Page, parameter: click.Parameter, *, typed: bool) -> list[str]:
    """A command line, with an empty value of the parameter or without the parameter."""
    words = [*page.path[1:]]
    if typed and isinstance(parameter, click.Option):
        words += [parameter.opts[0], ""]
    words += FURTHER.get(page.path[1:], ())
    for other in page.command.get_params(page.context):
        if other is parameter:
            words += [""] if typed and isinstance(other, click.Argument) else []
        elif other.required:
            value = sample_value(other, page.context)  # type: ignore[arg-type]
            words += [value] if isinstance(other, click.Argument) else [other.opts[0], value]
    return words


def test_every_documented_variable_is_looked_at() -> None:
    """The help names each variable of the list beside its options, but for what programs set for themselves."""
    assert {variable for *_, variable in doors()} == {
        name for name in VARIABLES if name.startswith("TXNCTL_") and name != "TXNCTL_RETRIES"
    }


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("variable", sorted({variable for *_, variable in doors()} - {"TXNCTL_STORE"}))
def test_an_empty_variable_is_as_an_empty_option(
    run: Any, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, with the name of the variable: `export TXNCTL_TXN=$(...)` after a failure is no absence."""
    of_variable = [(page, parameter) for page, parameter, named in doors() if named == variable]
    assert of_variable
    for page, parameter in of_variable:
        typed: Outcome = run(*line(page, parameter, typed=True))
        with monkeypatch.context() as environment:
            environment.setenv(variable, "")
            outcome: Outcome = run(*line(page, parameter, typed=False))
        assert (typed.status, outcome.status) == (2, 2), (page.path, typed, outcome)
        assert f"{variable}: ''" in outcome.err, (page.path, outcome)


def test_an_empty_name_of_the_store_is_none(
    run: Any, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By design: TXNCTL_STORE= takes the default, as XDG variables and NO_COLOR do."""
    assert run("topics", "list", "-o", "name").out == "orders\n"
    monkeypatch.setenv("TXNCTL_STORE", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    Store.create(tmp_path / "txnctl" / "store")
    assert run("topics", "list", "-o", "name").out == ""


@pytest.mark.parametrize(
    "words",
    [
        ("transactions", "run", "--", "true"),
        ("pipeline", "settle", "orders", "--table", "accounts"),
        ("producers", "lead", "orders", "--", "true"),
    ],
)
def test_a_command_that_must_not_run_inside_a_transaction_or_session(
    run: Any, path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty variable is neither inside nor outside."""
    variable = "TXNCTL_SESSION" if "lead" in words else "TXNCTL_TXN"
    monkeypatch.setenv(variable, "")
    outcome = run(*words)
    assert outcome.status == 2, outcome
    assert f"{variable}: ''" in outcome.err
    with Store.open(path, read_only=True) as store:
        assert store.reports.list_transactions() == []


def test_a_reader_without_subscription_reads_no_transaction(
    run: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not use a variable does not judge it."""
    monkeypatch.setenv("TXNCTL_TXN", "")
    monkeypatch.setenv("TXNCTL_SESSION", "")
    assert run("consume", "orders").status == 0
    assert run("topics", "list").status == 0
