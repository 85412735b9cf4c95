"""Command lines that a run shows, typed as shown: they act on the store that `--store` named."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store
from tests.txnctl.an_hour_ago import an_hour_ago
from txnctl.cli.command_table import COMMANDS
from txnctl.output import shell

ROOT = Path(__file__).parents[2]

_GROUPS = "|".join(COMMANDS)
_WRITTEN_OUT = re.compile(rf"\btxnctl (?:{_GROUPS})\b")

_SHOWN = re.compile(
    rf"(?:Next|Run|See|Back again|If it is right now): (txnctl .*)|`(txnctl [^`]*)`|\"(txnctl (?:--store \S+ )?(?:{_GROUPS})[^\"]*)\""
)


def shown(text: str) -> list[str]:
    """The command lines in an output."""
    return ["".join(found).strip() for found in _SHOWN.findall(text)]


def filled(path: Path) -> None:
    """A store with committed messages behind transaction 0:1, which nobody has used for an hour."""
    Store.create(path, clock=an_hour_ago())
    with Store.open(path, clock=an_hour_ago()) as store:
        for topic in ("orders", "-dash"):
            store.create_topic(topic)
        store.admin.subscriptions.create_subscription("orders", "billing", initial_position=EARLIEST)
        store.create_table("balances")
        producer = store.create_producer("orders", producer_name="loader")
        held = store.begin_transaction(timeout=7200)
        producer.send(b"held", txn=held)
        producer.send(b"plain")
        producer.close()


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store to name with `--store`; TXNCTL_STORE names a different one, set up alike."""
    path, other = tmp_path / "the named one.store", tmp_path / "other.store"
    for each in (path, other):
        filled(each)
    monkeypatch.setenv("TXNCTL_STORE", str(other))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return path


def typed(line: str) -> subprocess.CompletedProcess[str]:
    """A line as a person pastes it into a shell."""
    line = line.replace('"..."', "'for the test'")
    script = f'txnctl() {{ {shlex.quote(sys.executable)} -m txnctl "$@"; }}\n{line}'
    return subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False, timeout=60)


def open_transactions(path: Path) -> list[str]:
    with Store.open(path, read_only=True) as store:
        return [str(row.txn_id) for row in store.reports.list_transactions()]


COMMANDS_THAT_SHOW_ONE = (
    ("status",), ("doctor",), ("doctor", "-o", "json"), ("topics", "stats", "orders"), ("subscriptions", "lag", "orders"),
    ("transactions", "blocked"), ("transactions", "explain", "0:1"), ("transactions", "explain", "0:1", "-o", "json"),
    ("transactions", "show", "0:1"), ("transactions", "timeline", "orders"), ("transactions", "slow"),
    ("transactions", "abort", "0:1", "--dry-run"), ("topics", "delete", "-", "--dry-run"), ("topics", "show", "ordres"),
    ("topics", "delete", "orders", "--force", "--dry-run"), ("tables", "delete", "balances", "--dry-run"),
    ("tables", "get", "balances", "K"), ("tables", "show", "balence"), ("consume", "orders", "-n", "0"),
    ("subscriptions", "show", "orders", "biling"), ("producers", "fence", "orders", "--dry-run"),
    ("transactions", "commit"), ("transactions", "show", "0:99"), ("producers", "close"), ("producers", "close", "zzz"),
    ("check", "--format", "json"), ("consume", "orders"), ("consume", "orders", "-s", "billing", "--from", "earliest"),
)  # fmt: skip


@pytest.mark.parametrize("place", ["before", "after"])
def test_every_shown_command_names_the_store(run: Any, named: Path, place: str) -> None:
    """Before or after the verb, on screens, in JSON, in notes and errors; without `--store` nothing is added."""
    found = 0
    for words in COMMANDS_THAT_SHOW_ONE:
        option = ("--store", str(named))
        outcome = run(*option, *words) if place == "before" else run(*words, *option)
        commands = shown(outcome.out + outcome.err)
        found += len(commands)
        for text in commands:
            assert text.startswith(f"txnctl --store '{named}' "), (words, text)
        plain = run(*words)
        assert "--store" not in "".join(shown(plain.out + plain.err)), words
    assert found > 20


def test_a_pasted_command_acts_on_the_named_store(run: Any, named: Path, tmp_path: Path) -> None:
    """The steps of the runbook, each pasted from the one before: the other store is left alone."""
    lag = run("subscriptions", "lag", "orders", "--store", str(named))
    [explain] = shown(lag.out)
    explained = typed(explain)
    [dry_run] = {line for line in shown(explained.stdout) if "abort" in line}
    planned = typed(dry_run)
    [abort] = [line for line in shown(planned.stdout) if "--if-version" in line]
    done = typed(abort)
    assert (done.returncode, done.stderr) == (0, "")
    assert open_transactions(named) == []
    assert open_transactions(tmp_path / "other.store") == ["0:1"]


def test_a_missing_store_is_made_where_it_was_named(run: Any, named: Path, tmp_path: Path) -> None:
    """The hint of a mistyped path is no command for the store of TXNCTL_STORE."""
    missing = tmp_path / "missing one"
    [create] = shown(run("topics", "list", "--store", str(missing)).err)
    assert typed(create).returncode == 0
    assert missing.is_dir()
    create = shown(run("doctor", "--store", str(tmp_path / "third")).out)[-1]
    assert typed(create).returncode == 0
    assert (tmp_path / "third").is_dir()


def test_a_name_that_begins_with_a_hyphen_follows_two(run: Any, named: Path) -> None:
    """Typed as shown it is a name, and no option."""
    planned = run("topics", "delete", "--dry-run", "--store", str(named), "--", "-dash")
    [delete] = shown(planned.out)
    assert delete.endswith(' --yes --reason "..." -- -dash')
    assert typed(delete).returncode == 0
    with Store.open(named, read_only=True) as store:
        assert [row.name for row in store.reports.list_topics()] == ["orders"]


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        (("topics", "delete", "nowhere"), "topics list"),
        (("tables", "delete", "nowhere"), "tables list"),
        (("subscriptions", "delete", "-dash", "nobody"), "subscriptions list"),
    ],
)
def test_nobody_is_told_to_create_in_order_to_delete(
    run: Any, named: Path, words: tuple[str, ...], listed: str
) -> None:
    """The hint is the list; elsewhere it is the creation, with every argument."""
    outcome = run(*words[:2], "--yes", "--store", str(named), "--", *words[2:])
    assert outcome.status == 3
    assert f"hint: `txnctl --store '{named}' {listed}` shows what there is." in outcome.err
    error = run("subscriptions", "show", "--store", str(named), "--", "-dash", "nobody").err
    assert f"`txnctl --store '{named}' subscriptions create -- -dash nobody` makes one." in error


def test_an_empty_list_is_told_of(run: Any, named: Path) -> None:
    """On standard error, as a table alone; where the command says more, that is enough."""
    assert run("audit", "list", "--store", str(named)).err == "txnctl: there is nothing to list\n"
    assert run("audit", "list", "-o", "json", "--store", str(named)).err == ""
    assert (
        "nothing to list"
        not in run("subscriptions", "pending", "orders", "billing", "--store", str(named)).err
    )


def test_the_report_names_the_store(run: Any, named: Path) -> None:
    """Each command of the page."""
    page = run("report", "--html", "-", "--store", str(named)).out
    commands = re.findall(r"<code>(txnctl [^<]*)</code>", page)
    assert commands
    assert all(text.startswith(f"txnctl --store '{named}' ") for text in commands)


_NO_COMMANDS = {
    "commands/demo.py": ["The store was temporary and is gone. To look into it: txnctl demo --keep-store"],
    "commands/store/verify_child.py": ["txnctl store verify"],
    "commands/transactions/abort_report.py": ["txnctl transactions run "],
    "report/page.py": ["Made by txnctl report, release "],
}
"""A command that makes a store of its own, the names of processes, and the origin of a page."""

_MADE_FOR_HELP = frozenset(
    {"Section", "example", "option", "argument", "Group", "Command", "names_store", "forcible"}
)


def written_out(tree: ast.Module) -> list[str]:
    """Texts of a module with a command of txnctl, without docstrings, examples and help texts."""
    skipped = set()
    for node in ast.walk(tree):
        is_help = (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MADE_FOR_HELP
        )
        is_setup = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).lstrip("_") in (
            "SETUP",
            "HELP",
            "TALK",
        )
        if is_help or is_setup or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            skipped |= {id(inner) for inner in ast.walk(node)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped
        and _WRITTEN_OUT.search(node.value)
    ]  # fmt: skip


def test_one_module_writes_commands_out() -> None:
    """A command in a text of any other module would not name the store."""
    found = {}
    for path in sorted((ROOT / "txnctl").rglob("*.py")):
        place = path.relative_to(ROOT / "txnctl")
        if place.parts[0] in ("generate", "demo") or path == Path(shell.__file__):
            continue
        texts = written_out(ast.parse(path.read_text()))
        if texts:
            found[str(place)] = texts
    # Remedies are shown as they stand by `errors explain`, and with the store as hints (`remedy_hint`).
    assert found.pop("cli/remedies.py")
    assert found == _NO_COMMANDS
