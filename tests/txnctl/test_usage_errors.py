"""Every usage error ends in a command line that is no usage error: over all commands, options and arguments."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress

import click
import pytest

from storage.errors import BadInput
from txnctl.cli import error_report
from txnctl.cli.click_commands import Argument, Command, GroupCommand, Option
from txnctl.cli.main import root
from txnctl.cli.sample_values import sample_value
from txnctl.cli.value_types import SessionToken
from txnctl.generate.tree import Page, pages
from txnctl.output.shell import name_store

WIDTH = 80
PAGES = {page.title: page for page in pages() if page.path[1:]}
COMMANDS = {title: page for title, page in PAGES.items() if isinstance(page.command, Command)}
WITH_SHARED = "txnctl topics delete"
"""A command with most of the options that commands share."""
NO_VALUE = "\x01"
"""A value that no grammar takes."""


@pytest.fixture(autouse=True)
def _no_store() -> Iterator[None]:
    yield
    name_store(None)


def refusal(page: Page, words: list[str]) -> click.UsageError | BadInput | None:
    """The error of these words after the command, which does not run."""
    name_store(None)
    try:
        page.command.make_context(page.path[-1], list(words), parent=page.context.parent)
    except (click.UsageError, BadInput) as error:
        return error
    except click.exceptions.Exit:
        pass
    return None


def suggested(error: click.UsageError | BadInput) -> list[str]:
    """The words of the command line at the end of the error, as 80 columns show it."""
    lines = error_report.of(error).lines(WIDTH).splitlines()
    assert any(line.startswith("txnctl: hint: ") for line in lines), lines
    assert all(len(line) <= WIDTH for line in lines), lines
    text = "\n".join(lines).replace(" \\\n", " ")
    at = max(text.rfind(f"{before}txnctl ") for before in (" ", "\n"))
    assert at > 0, f"no command: {text}"
    return shlex.split(text[at:])[1:]


def assert_accepted(words: list[str], line: str) -> None:
    """The parser takes the words, from the root on; nothing runs."""
    command: click.Command = root()
    at = click.Context(command, info_name="txnctl")
    while isinstance(command, GroupCommand) and words and not words[0].startswith("-"):
        name, member, words = command.resolve_command(at, words)
        assert member is not None, line
        at, command = click.Context(member, parent=at, info_name=name, **member.context_settings), member
    if words[:1] == ["--help"]:
        return
    if isinstance(command, GroupCommand):
        assert not words or words[0].startswith("-"), line
        return
    with suppress(click.exceptions.Exit):
        command.make_context(at.info_name, [*words], parent=at.parent)


def assert_mended(page: Page, words: list[str], *, helped: bool = False) -> list[str]:
    """The words are refused, and the error ends in a line that is not, nor `--help`."""
    typed = f"{page.title} {shlex.join(words)}"
    error = refusal(page, words)
    assert error is not None, typed
    line = suggested(error)
    assert helped or "--help" not in line, (typed, line)
    assert line[: len(page.path) - 1] == list(page.path[1:]), (typed, line)
    assert_accepted(line, f"{typed} -> {shlex.join(line)}")
    return line


def needed(page: Page) -> list[str]:
    """The words that the command needs."""
    words: list[str] = []
    for parameter in page.command.get_params(page.context):
        if parameter.required and isinstance(parameter, Argument):
            words.append(sample_value(parameter, page.context))
        elif parameter.required and isinstance(parameter, Option):
            words[:0] = [parameter.opts[-1], sample_value(parameter, page.context)]
    return words


def options(page: Page) -> list[Option]:
    """Of the command alone; for one command those that many share as well."""
    every = [each for each in page.command.get_params(page.context) if isinstance(each, Option)]
    tokens = [each for each in every if isinstance(each.type, SessionToken)]
    return [each for each in every if each not in tokens and (not each.shared or page.title == WITH_SHARED)]


def typed(page: Page, *option: str) -> list[str]:
    """The option among the words that the command needs: before a command to run, else at the end."""
    words = needed(page)
    if isinstance(page.command, Command) and page.command.declaration.passes_arguments:
        return [*words[:-1], *option, "--", words[-1]]
    return [*words, *option]


@pytest.mark.parametrize("title", COMMANDS)
def test_every_sample_is_accepted(title: str) -> None:
    """A line with the needed words alone, and with each option."""
    page = COMMANDS[title]
    assert refusal(page, needed(page)) is None
    for option in options(page):
        if option.opts[0] in ("-h", "--json-schema"):
            continue
        value = [] if option.is_flag else [sample_value(option, page.context)]
        assert refusal(page, typed(page, option.opts[-1], *value)) is None, (title, option.opts)


@pytest.mark.parametrize("title", COMMANDS)
def test_an_option_without_its_value_is_shown_with_one(title: str) -> None:
    """By each name, long, short and former."""
    page = COMMANDS[title]
    for option in options(page):
        if option.is_flag or option._flag_needs_value:
            continue
        for name in [*option.opts, *option.aliases]:
            words = typed(page, name)
            line = assert_mended(page, words[: words.index("--")] if "--" in words else words)
            assert name in line


@pytest.mark.parametrize("title", COMMANDS)
def test_a_value_of_another_kind_is_replaced(title: str) -> None:
    """Of each option, as a word of its own and after `=`, and of each argument."""
    page = COMMANDS[title]
    for option in options(page):
        if option.is_flag or refusal(page, typed(page, option.opts[-1], NO_VALUE)) is None:
            continue
        line = assert_mended(page, typed(page, option.opts[-1], NO_VALUE))
        assert NO_VALUE not in line
        assert_mended(page, typed(page, f"{option.opts[-1]}={NO_VALUE}"))
    words = needed(page)
    for at in range(len(words)):
        wrong = [*words[:at], NO_VALUE, *words[at + 1 :]]
        if refusal(page, wrong) is not None:
            assert NO_VALUE not in assert_mended(page, wrong)


@pytest.mark.parametrize("title", COMMANDS)
def test_a_flag_with_a_value_is_shown_without(title: str) -> None:
    page = COMMANDS[title]
    for option in options(page):
        if option.is_flag:
            for name in [each for each in option.opts if each[:2] == "--"]:
                assert_mended(page, typed(page, f"{name}=5"), helped=name == "--help")


@pytest.mark.parametrize("title", COMMANDS)
def test_a_misspelled_option_is_the_nearest(title: str) -> None:
    """With its value; an option that is like none goes."""
    page = COMMANDS[title]
    for option in options(page):
        long = next((name for name in option.opts if len(name) > 6), None)
        if option.hidden or long is None or long == "--help":
            continue
        value = [] if option.is_flag else [sample_value(option, page.context)]
        wrong = f"{long[:-2]}{long[-1]}{long[-2]}"
        if wrong != long:
            assert long in assert_mended(page, typed(page, wrong, *value)), wrong
    assert_mended(page, typed(page, "--zzzzzz"))


@pytest.mark.parametrize("title", COMMANDS)
def test_missing_and_surplus_arguments(title: str) -> None:
    """Each missing one has a sample; a surplus one goes."""
    page = COMMANDS[title]
    words = needed(page)
    for count in range(len(words)):
        if refusal(page, words[:count]) is not None:
            assert_mended(page, words[:count])
    surplus = [*words, *["surplus"] * 9]
    # The hint of a wrong token is the command that prints one.
    if refusal(page, surplus) is not None and title != "txnctl producers close":
        assert_mended(page, surplus)


@pytest.mark.parametrize("title", [title for title, page in PAGES.items() if title not in COMMANDS])
def test_a_group_with_a_wrong_option_or_command(title: str) -> None:
    """An option of a command stands after the command; a command has the nearest name."""
    page = PAGES[title]
    assert isinstance(page.command, GroupCommand)
    first = page.command.table.names()[0]
    assert_mended(page, ["--zzzzzz"], helped=True)
    assert_mended(page, ["--colr", "never", first])
    assert_mended(page, ["--debug=5", first])
    assert_mended(page, ["--zzzzzz", first])
    for name in (f"{first[:-1]}x", "zzzzzz"):
        with pytest.raises(click.UsageError) as caught:
            page.command.resolve_command(page.context, [name])
        line = suggested(caught.value)
        assert_accepted(line, f"{title} {name} -> {line}")
        assert (line[-1] == "--help") is (name == "zzzzzz")


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("transactions list --label", "transactions list --label job=loader"),
        ("topics peek orders --cuont 3", "topics peek orders --count 3"),
        ("topics -n 5 peek orders", "topics peek orders -n 5"),
        ("topcs lst", "topics list"),
        ("verify --full", "store verify --full"),
        ("transactions show 0:1 0:2", "transactions show 0:1"),
        ("tables scan accounts -n -5", "tables scan accounts -n 10"),
        ("producers lead", "producers lead orders -- true"),
        ("errors explain", "errors explain busy"),
        ("--store /a/b topics stats", "--store /a/b topics stats orders"),
        ("topics stats --store /a/b", "--store /a/b topics stats orders"),
    ],
)
def test_lines_as_typed(run: object, typed: str, shown: str) -> None:
    """The line that was meant, with the store that was named."""
    outcome = run(*typed.split())  # type: ignore[operator]
    assert outcome.status == 2
    assert outcome.err.endswith(f" txnctl {shown}\n"), outcome
