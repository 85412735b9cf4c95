"""No command prints a line that is wider than the terminal: results, notes, questions, errors, hints and help.

A word of a command that is wider than the terminal stays whole on a line of its own: somebody pastes the command.
Elsewhere a name or key that is wider is cut in the middle.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store
from tests.postgres_cluster import Cluster
from tests.txnctl.full_store import KEY, LONG, LONG_NAME, LONG_TOPIC, LONGEST, TABLE, FullStore
from tests.txnctl.terminal_runs import CHECKOUT, Terminals, commands

WIDTHS = (80, 60)
WORD = re.compile(r"""\s*(?:\S+|'[^']*')(?: \\)?\s*""")
"""A word, or an argument in quotes; a command goes on in the next line."""
SUBSCRIPTION = (LONG_TOPIC, LONG_NAME)

READS: dict[str, tuple[tuple[str, ...], ...]] = {
    "store info": ((),),
    "store verify": ((), ("--full",)),
    "store locks": ((),),
    "store readers": ((),),
    "store space": ((), ("--freeable",), ("--topics",)),
    "store config": ((),),
    "store gc": (("--dry-run",),),
    "store upgrade": (("--dry-run",),),
    "topics list": ((),),
    "topics show": (("orders",), (LONG_TOPIC,)),
    "topics stats": (("orders",), (LONG_TOPIC,)),
    "topics stats-internal": (("orders",), (LONG_TOPIC,)),
    "topics positions": (("orders",), (LONG_TOPIC,)),
    "topics peek": (("orders",), (LONG_TOPIC, "--from", "latest"), (*SUBSCRIPTION[:1], "-s", LONG_NAME)),
    "topics log": (("orders",), (LONG_TOPIC,)),
    "topics last-message-id": ((LONG_TOPIC,),),
    "topics config": ((LONG_TOPIC,),),
    "topics trim": ((LONG_TOPIC, "--dry-run"),),
    "topics truncate": ((LONG_TOPIC, "--dry-run"), (LONG_TOPIC, "--dry-run", "--force")),
    "topics delete": ((LONG_TOPIC, "--dry-run"), (LONG_TOPIC, "--dry-run", "--force")),
    "topics compact": ((LONG_TOPIC, "--dry-run"),),
    "subscriptions list": ((), ("orders",), (LONG_TOPIC,)),
    "subscriptions show": (SUBSCRIPTION, ("orders", "billing"), ("orders",)),
    "subscriptions stats": (SUBSCRIPTION, ("orders", "billing")),
    "subscriptions lag": ((), ("orders",), (LONG_TOPIC,), SUBSCRIPTION),
    "subscriptions pending": (SUBSCRIPTION,),
    "subscriptions seek": ((*SUBSCRIPTION, "earliest", "--dry-run"), (*SUBSCRIPTION, "latest", "--dry-run")),
    "subscriptions skip": ((*SUBSCRIPTION, "10", "--dry-run"),),
    "subscriptions clear-backlog": ((*SUBSCRIPTION, "--dry-run"),),
    "subscriptions redrive": ((*SUBSCRIPTION, "--dry-run"),),
    "subscriptions evict": ((*SUBSCRIPTION, "--dry-run"),),
    "subscriptions update": ((*SUBSCRIPTION, "--isolation-level", "read-uncommitted", "--dry-run"),),
    "subscriptions delete": ((*SUBSCRIPTION, "--dry-run"),),
    "producers list": ((), ("payments",)),
    "producers show": (("payments",), ("orders",), (LONG_TOPIC,)),
    "producers fence": ((LONG_TOPIC, "--dry-run"), ("payments", "--waiting", "--dry-run")),
    "transactions list": ((), ("--ended",)),
    "transactions show": (("0:2",), ("0:6",), ("0:7",)),
    "transactions blocked": ((), ("orders",), (LONG_TOPIC,)),
    "transactions explain": tuple([(f"0:{number}",) for number in range(1, 12)]),
    "transactions abort": tuple([(f"0:{number}", "--dry-run") for number in range(1, 12)]),
    "transactions slow": ((), ("--over", "0s")),
    "transactions orphans": ((),),
    "transactions reap": (("--dry-run",),),
    "transactions history": ((),),
    "transactions timeline": (("orders",), (LONG_TOPIC,)),
    "consume": ((LONG_TOPIC, "-n", "3"), (LONG_TOPIC, "-n", "3", "-o", "table"), ("orders", "-o", "table")),
    "tables list": ((),),
    "tables show": ((TABLE,),),
    "tables stats": ((TABLE,), ("balances",)),
    "tables get": ((TABLE, KEY, "-o", "table"), (TABLE, "no such key")),
    "tables scan": ((TABLE,),),
    "tables versions": ((TABLE, KEY),),
    "tables changes": ((TABLE, "--since", "2024-01-01"), (TABLE,)),
    "tables intents": ((TABLE,), ("balances",)),
    "tables history": ((TABLE,), ()),
    "tables delete": ((TABLE, "--dry-run"), (TABLE, "--dry-run", "--force")),
    "status": ((),),
    "doctor": ((), ("--programs",)),
    "check": ((),),
    "audit list": ((),),
    "audit show": (("1",), ("5",)),
    "config show": ((),),
    "errors list": ((),),
    "errors explain": (("transaction-conflict",), ("nothing",)),
    "version": ((),),
    "help": ((), ("transactions",), ("transactions", "abort")),
}
"""Commands that read, with arguments that fill the screen; a dry run reads too."""

ON_SERVER = (
    "store info", "store verify", "store locks", "store readers", "store space", "store config", "store gc", "store upgrade",
    "topics list", "topics show", "subscriptions list", "producers list", "transactions list", "status", "doctor", "check",
    "config show",
)  # fmt: skip
"""Of these, the commands that say anything of the engine, or of processes."""

CHANGES: dict[str, tuple[tuple[str, ...], ...]] = {
    "store init": ((), ("new.store",)),
    "store backup": (("to-a-directory-with-a-name-that-is-rather-long.backup",),),
    "store restore": (("nothing-here", "--to", "there"),),
    "store compact": ((), ("--yes",)),
    "store copy": (("0.store", "copied.store"), ("no-such", "b.store"), ("0.store", "b.store", "--dry-run")),
    "store gc": ((),),
    "topics create": (("new", "--retention-time", "1h"), (LONG_TOPIC,)),
    "topics trim": ((LONG_TOPIC,),),
    "topics delete": ((LONG_TOPIC,), (LONG_TOPIC, "--yes"), (LONG_TOPIC, "--yes", "--force")),
    "topics config": ((LONG_TOPIC, "--retention-time", "0", "--retention-size", "0"),),
    "subscriptions create": ((LONG_TOPIC, "new"), SUBSCRIPTION),
    "subscriptions seek": ((*SUBSCRIPTION, "latest", "--yes"),),
    "subscriptions skip": ((*SUBSCRIPTION, "10", "--yes"),),
    "subscriptions ack": ((*SUBSCRIPTION, "1:0:0"), (*SUBSCRIPTION, "1:0:999999")),
    "subscriptions nack": ((*SUBSCRIPTION, "1:0:0"),),
    "subscriptions delete": ((*SUBSCRIPTION, "--yes"),),
    "producers open": ((LONG_TOPIC, "--producer", "loader"), ("payments",)),
    "producers close": ((), ("no-token",)),
    "producers fence": (("orders", "--yes"),),
    "producers lead": (("orders", "--timeout", "100ms", "--", "true"),),
    "transactions begin": (("--label", "job=x"),),
    "transactions commit": (("0:2",), ("0:99",), ()),
    "transactions abort": (("0:2",), ("0:5",), ("0:99",)),
    "transactions run": (("--", "true"), ("--", "false")),
    "transactions wait": (("0:2", "--timeout", "100ms"),),
    "transactions reap": ((),),
    "produce": ((LONG_TOPIC, "-m", "text"), ("no-such-topic-anywhere", "-m", "text")),
    "consume": ((LONG_TOPIC, "-s", LONG_NAME, "-n", "3", "-o", "table"), ("orders", "-s", "billing", "-n", "3")),
    "tables create": (("new",), (TABLE,)),
    "tables put": ((TABLE, "a", "1"), (TABLE, KEY, "1")),
    "tables rm": ((TABLE, "a"), (TABLE, KEY)),
    "tables delete": ((TABLE, "--yes"), (TABLE, "--yes", "--force")),
    "tables import": ((TABLE, "no-such-file.ndjson"),),
}  # fmt: skip
"""Commands that change a copy of the store."""

WITHOUT_LINES = {
    "completion": "a script",
    "report": "a page",
    "tables export": "values, for programs",
    "demo": "see test_demo.py",
    "top": "a screen: see test_top_screen.py",
}
"""Commands without lines for people."""


@pytest.fixture(scope="module")
def full_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullStore]:
    """The store that the commands read."""
    store = FullStore(tmp_path_factory.mktemp("full") / "bank.store")
    yield store
    store.end()


@pytest.fixture(scope="module")
def terminals(full_store: FullStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminals]:
    """Terminals whose commands use the store, unless said otherwise."""
    home = tmp_path_factory.mktemp("home")
    opened = Terminals({"TXNCTL_STORE": str(full_store.path), "HOME": str(home)})
    yield opened
    opened.close()


def broken(text: str) -> list[str]:
    """Commands in backquotes that a line end breaks without a backslash."""
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    joined = re.sub(r" \\\r?\n *", " ", plain)
    return re.findall(r"`(?:txnctl|man|kill|ps) [^`\n]*\n", joined)


def too_wide(text: str, columns: int) -> list[str]:
    """Lines wider than the terminal, but for single words of a command that goes over several lines."""
    lines = [line for part in text.split("\n") for line in part.split("\r")]
    plain = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line).rstrip() for line in lines]
    return [
        line
        for before, line in zip(["", *plain], plain, strict=False)
        if len(line) > columns and not (before.endswith(" \\") and WORD.fullmatch(line))
    ]


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", READS)
def test_no_line_of_a_report_is_wider_than_the_terminal(
    terminals: Terminals, name: str, columns: int
) -> None:
    """In tables full of long names."""
    for arguments in READS[name]:
        shown = terminals.run(columns, *name.split(), *arguments)
        assert shown.strip(), arguments
        assert "usage" not in shown.lower() or name in ("errors list", "help"), shown
        assert too_wide(shown, columns) == [], shown
        assert broken(shown) == [], shown


@pytest.fixture(scope="module")
def longest_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullStore]:
    """A store with names as long as may be."""
    store = FullStore(tmp_path_factory.mktemp("longest") / "bank.store", LONGEST)
    yield store
    store.end()


@pytest.fixture(scope="module")
def longest(longest_store: FullStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminals]:
    """Terminals at that store."""
    home = tmp_path_factory.mktemp("home")
    opened = Terminals({"TXNCTL_STORE": str(longest_store.path), "HOME": str(home)})
    yield opened
    opened.close()


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", READS)
def test_no_name_makes_a_line_of_a_report_wider_than_the_terminal(
    longest: Terminals, name: str, columns: int
) -> None:
    """Names of 128 and keys of 300 characters: begin and end are seen, and commands have them whole."""
    for arguments in READS[name]:
        words = [
            *name.split(),
            *[dict(zip(LONG, LONGEST, strict=True)).get(word, word) for word in arguments],
        ]
        shown = longest.run(columns, *words)
        assert too_wide(shown, columns) == [], shown
        assert broken(shown) == [], shown
        assert [command for command in commands_shown(shown) if "…" in command] == [], shown


def test_a_pipe_cuts_no_name(longest_store: FullStore) -> None:
    """Each name is whole there, on the line that has it, whatever COLUMNS says."""
    topic, subscription, table, key = LONGEST
    for words, names in (
        (("topics", "stats", topic), (topic, subscription)),
        (("subscriptions", "evict", topic, subscription, "--dry-run"), (topic, subscription)),
        (("tables", "get", table, key, "-o", "table"), (table, key)),
        (("tables", "get", table, f"no {key}"), (table, key)),
        (("doctor",), (topic, subscription)),
    ):
        piped = subprocess.run(
            [sys.executable, "-m", "txnctl", *words],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "TXNCTL_STORE": str(longest_store.path), "COLUMNS": "60"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        ).stdout  # fmt: skip
        assert "…" not in piped
        assert [name for name in names if name not in piped] == [], piped


@pytest.fixture(scope="module")
def url(full_store: FullStore, postgres_cluster: Cluster) -> Iterator[str]:
    """The URL of a copy of the store on a server, which this process has open."""
    url = postgres_cluster.url("widths")
    Store.copy(full_store.path, url, durability="local")
    with Store.open(url) as store:
        consumer = store.subscribe(LONG_TOPIC, LONG_NAME, consumer_name=LONG_NAME)
        yield url
        consumer.close()
    postgres_cluster.psql("SET client_min_messages = error; DROP SCHEMA widths CASCADE")


@pytest.mark.needs_program("initdb")
@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", ON_SERVER)
def test_no_line_of_a_report_on_a_server_is_wider_than_the_terminal(
    terminals: Terminals, url: str, name: str, columns: int
) -> None:
    """Reports speak of the server there, and name its store by a long URL."""
    for arguments in READS[name]:
        shown = terminals.run(columns, "--store", url, *name.split(), *arguments)
        assert shown.strip(), arguments
        assert "usage" not in shown.lower(), shown
        assert too_wide(shown, columns) == [], shown


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", CHANGES)
def test_no_line_of_a_change_is_wider_than_the_terminal(
    terminals: Terminals, full_store: FullStore, tmp_path: Path, name: str, columns: int
) -> None:
    """Done, asked, or refused."""
    for number, arguments in enumerate(CHANGES[name]):
        copy = tmp_path / f"{number}.store"
        shutil.copytree(full_store.path, copy)
        before = () if name in ("store init", "store copy") and arguments else ("--store", str(copy))
        shown = terminals.run(columns, *before, *name.split(), *arguments, answer="n\n", directory=tmp_path)
        assert too_wide(shown, columns) == [], shown
        assert broken(shown) == [], shown
        assert not {path.name for path in CHECKOUT.iterdir()} & {*arguments}


@pytest.mark.parametrize("columns", WIDTHS)
def test_no_line_of_help_or_of_an_error_is_wider_than_the_terminal(
    terminals: Terminals, columns: int
) -> None:
    """Of every command: help, fields, an unknown option, a store that is not there, missing arguments."""
    # Below /proc not even the superuser makes a directory, so `store init` fails there too.
    wrong = ("--no-such-option",), ("--store", "/proc/no/such/directory/for/a/store/of/the/bank")
    for path in commands():
        shown = [terminals.run(columns, *path, *more) for more in (("--help",), *wrong)]
        assert [line for text in shown for line in too_wide(text, columns)] == [], path
        assert [line for text in shown for line in broken(text)] == [], path
        joined = re.sub(r" \\\n *", " ", shown[0])
        assert [line for line in joined.split("\n") if line.count("`") % 2] == [], path


@pytest.mark.parametrize("columns", WIDTHS)
def test_no_line_of_the_list_of_fields_is_wider_than_the_terminal(terminals: Terminals, columns: int) -> None:
    """`-o help`."""
    for path in commands():
        shown = terminals.run(columns, *path, "-o", "help")
        assert too_wide(shown, columns) == [], path
        assert "Traceback" not in shown
        assert broken(shown) == [], path


def commands_shown(text: str) -> list[str]:
    """The commands to paste, lines joined as the shell joins them."""
    joined = re.sub(r" \\\n +", " ", text)
    return re.findall(r"^ *(?:Next|Run|See): (.*)$", joined, re.MULTILINE)


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_broken_command_is_the_command_of_a_wide_terminal(
    terminals: Terminals, full_store: FullStore, columns: int
) -> None:
    """On every screen that names one, also with the store named."""
    found = 0
    for words in (
        ("transactions", "abort", "0:7", "--dry-run"),
        ("doctor",),
        ("store", "space", "--freeable"),
    ):
        named = ("--store", str(full_store.path), *words)
        shown, whole = terminals.run(columns, *named), terminals.run(2000, *named)
        assert commands_shown(shown) == commands_shown(whole)
        assert f"txnctl --store {full_store.path} " in re.sub(r" \\\n +", " ", shown)
        found += len(commands_shown(shown))
    assert found > 8


def test_wide_shows_what_a_pipe_gets(terminals: Terminals, full_store: FullStore) -> None:
    """All columns, a row a line, whatever the terminal."""
    for words in (("subscriptions", "list"), ("topics", "list"), ("tables", "intents", "balances")):
        wide = terminals.run(60, *words, "-o", "wide")
        piped = subprocess.run(
            [sys.executable, "-m", "txnctl", *words],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "TXNCTL_STORE": str(full_store.path), "COLUMNS": "60"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert max(map(len, wide.splitlines())) > 100
        assert re.sub(r"\d+m\d+s|\d+h\d+m", "", wide) == re.sub(r"\d+m\d+s|\d+h\d+m", "", piped.stdout)


def test_every_command_is_run() -> None:
    """A new command comes with its arguments here."""
    missing = {" ".join(path) for path in commands()} - {*READS, *CHANGES, *WITHOUT_LINES}
    assert {name for name in missing if not name.startswith("pipeline ")} == set()
