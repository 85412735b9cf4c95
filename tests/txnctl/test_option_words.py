"""One word, one option: over all commands a name of an option has one meaning, and a meaning one name."""

from __future__ import annotations

import inspect
import re
import sys
from collections import defaultdict
from typing import Any

import pytest

from storage import AccessMode, IsolationLevel, SubscriptionType
from txnctl.cli import value_types
from txnctl.cli.aliases import OPTION_ALIASES
from txnctl.cli.click_commands import Command, Option
from txnctl.cli.of_now import known
from txnctl.cli.value_types import NamedConstant
from txnctl.generate.tree import Page, pages

PAGES = list(pages())
COMMANDS = [page for page in PAGES if isinstance(page.command, Command)]

TWO_NOUNS = {
    "--to": "the end of a range, and the place of a copy: `store restore SRC --to PATH` is a shape of scripts",
    "--output": "the format of a result, and the file that `check` writes for a collector",
}
"""Options with two meanings, and why."""

ASK = re.compile(r"\.confirm\(|\basked\(|\babort_many\(")
"""A question in the body of a command, or of the functions that commands share for it."""


def options(page: Page) -> list[Option]:
    return [each for each in page.command.get_params(page.context) if isinstance(each, Option)]


def noun(option: Option, page: Page) -> str:
    """The last noun of the metavar, `TABLE` of `NAME[=TABLE]`; of a list of names and of a flag no noun."""
    if option.is_flag:
        return "(none)"
    words: list[str] = re.findall(r"[A-Z]{1,}", option.make_metavar(page.context))
    return "(names)" if isinstance(option.type, NamedConstant) or not words else words[-1]


def test_a_short_name_stands_for_one_long_name() -> None:
    """`-n` is the count, `-f` follows, `-q` is quiet, `-s` is the subscription."""
    long_names: dict[str, set[str]] = defaultdict(set)
    for page in PAGES:
        for option in options(page):
            for name in option.opts:
                if not name.startswith("--"):
                    long_names[name].add(next(each for each in option.opts if each.startswith("--")))
    different = {name: names for name, names in long_names.items() if len(names) > 1}
    # `-o` is the format on every command; on `check` its long name is that of monitoring plugins.
    assert different == {"-o": {"--output", "--format"}}
    assert (long_names["-n"], long_names["-q"]) == ({"--count"}, {"--quiet"})


def test_a_long_name_has_the_same_short_name_everywhere() -> None:
    """A hand that knows `-n` on one command types it on the next."""
    short_names: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for page in PAGES:
        for option in options(page):
            for name in option.opts:
                if name.startswith("--"):
                    short_names[name].add(tuple(sorted(each for each in option.opts if each[1] != "-")))
    different = {name: names for name, names in short_names.items() if len(names) > 1}
    # `pipeline` has Spark's own words, and `ls -s` is no habit there.
    # `--output` of `check` is a file; `--format` is of files of `pipeline`, and of the result of `check`, as `-o`.
    assert different.keys() <= {
        "--subscription",
        "--key",
        "--property",
        "--message",
        "--format",
        "--output",
    }, different


def test_a_long_name_takes_the_same_kind_of_value_everywhere() -> None:
    """The noun in the help is the same, whether a flag or not is the same."""
    nouns: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for page in PAGES:
        for option in options(page):
            for name in option.opts:
                nouns[name][noun(option, page)].append(page.title)
    different = {name: dict(each) for name, each in nouns.items() if len(each) > 1 and name[1] == "-"}
    assert {name: each for name, each in different.items() if name not in TWO_NOUNS} == {}


def test_every_count_has_one_name_and_takes_the_former_one() -> None:
    """No option of the tree is called --limit, and every command with a count takes the name."""
    counts = 0
    for page in COMMANDS:
        for option in options(page):
            assert "--limit" not in option.opts, page.title
            if "--count" in option.opts:
                assert option.opts == ["-n", "--count"], page.title
                parser = page.command.make_parser(page.context)
                _, _, order = parser.parse_args(["--limit", "3", "--count", "4", "-n", "5"])
                assert order[:3] == [option] * 3
                assert "--limit" not in page.command.get_help(page.context)
                counts += 1
    assert counts >= 12


@pytest.mark.parametrize(("name", "aliases"), OPTION_ALIASES.items())
def test_a_former_name_is_taken_and_not_shown(name: str, aliases: tuple[str, ...]) -> None:
    """By every command with the option, and never in the place of another one."""
    found = 0
    for page in COMMANDS:
        for option in [each for each in options(page) if name in each.opts]:
            found += 1
            for alias in aliases:
                assert alias not in option.opts
                assert not any(alias in each.opts for each in options(page)), page.title
                value = [] if option.is_flag else ["1"]
                assert page.command.make_parser(page.context).parse_args([alias, *value])[2][0] is option
    assert found, f"no command has {name}"


def test_quiet_is_taken_by_every_command() -> None:
    """With one meaning: no notes, no progress, no summary; shown where a store is used."""
    for page in COMMANDS:
        assert isinstance(page.command, Command)
        (quiet,) = [option for option in options(page) if "-q" in option.opts]
        uses_store = page.title.startswith("txnctl store ") or bool(page.command.declaration.opens)
        assert quiet.hidden is not uses_store, page.title


def test_yes_is_shown_where_something_is_asked_and_taken_by_every_change() -> None:
    """In help, manual and completion, which leave out what is hidden."""
    for page in COMMANDS:
        assert isinstance(page.command, Command)
        declaration = page.command.declaration
        yes = [option for option in options(page) if "--yes" in option.opts]
        changes = declaration.opens == "write" or declaration.effect in ("writes", "destroys")
        assert bool(yes) is changes, page.title
        asks = ASK.search(inspect.getsource(sys.modules[declaration.body.__module__])) is not None
        assert declaration.asks is asks, page.title
        assert [option.hidden for option in yes] == [not asks] * len(yes), page.title
        shown = page.command.get_help(page.context).partition("ptions:")[2].partition("Examples:")[0]
        assert ("--yes" in shown) is asks, page.title


@pytest.mark.parametrize(
    ("kind", "enumeration"),
    [
        (value_types.SUBSCRIPTION_TYPE, SubscriptionType),
        (value_types.ACCESS_MODE, AccessMode),
        (value_types.ISOLATION_LEVEL, IsolationLevel),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_a_named_constant_is_shown_in_one_spelling_and_taken_in_all(
    kind: NamedConstant, enumeration: Any
) -> None:
    """The help has the word that results have."""
    assert [member.value for member in enumeration] == list(kind.names)
    for member in enumeration:
        for text in (member.value, member.name, member.name.lower(), member.name.replace("_", "-").lower()):
            assert kind.read(text) is member


def test_every_choice_takes_any_case_and_both_spellings() -> None:
    """No option compares names letter by letter."""
    for page in COMMANDS:
        for option in options(page):
            assert type(option.type).__name__ != "Choice", (page.title, option.opts)
            if isinstance(option.type, NamedConstant):
                for name in option.type.names:
                    assert option.type.read(name.upper().replace("-", "_")) == option.type.read(name)


@pytest.mark.parametrize("text", ["2h", "@2h", "2024-05-01T10:00:00Z", "@2024-05-01", "1700000000000"])
def test_every_time_takes_every_form(text: str) -> None:
    """One grammar: an age, ISO 8601, a date, milliseconds; with and without `@`. A delivery is no age."""
    kinds = {
        option.type
        for page in COMMANDS
        for option in options(page)
        if not option.is_flag
        and option.make_metavar(page.context) == "TIME"
        and option.opts != ["--deliver-at"]
    }
    assert len(kinds) == 2, "of messages, and of tables"
    for kind in kinds:
        assert isinstance(known(kind.convert(text, None, None), 1_700_000_000_000), int)
