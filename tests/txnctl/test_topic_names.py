"""A topic in JSON: `topic` and `topics` hold the full name everywhere, `name` beside it the short one."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.values.names import full_topic_name, short_topic_name
from tests.txnctl.preparations import prepare
from tests.txnctl.spark.job_examples import TITLES
from txnctl.cli.declaration import Example
from txnctl.generate.tree import examples

CHECKOUT = Path(__file__).parents[2]
FULL = "persistent://public/default/"
STARTS_JVM = pytest.mark.needs_program("java")


def named_topics() -> Iterator[tuple[str, Example]]:
    """The first example of each command that prints something in JSON and has a topic in what it does.

    Those of jobs on Spark are looked at where there is a session. `pipeline run` prints what its program prints.
    """
    seen = {"txnctl pipeline run"}
    for title, example in examples():
        words = " ".join([*example.setup, *example.lines])
        if title not in seen and title not in TITLES and ("topics create" in words or "produce" in words):
            seen.add(title)
            yield title, example


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a document."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from objects(each)
    elif isinstance(value, list):
        for each in value:
            yield from objects(each)


def check(document: Any) -> int:
    """How many topics are named in it, all of them by the rule."""
    found = 0
    for each in objects(document):
        if isinstance(each.get("topic"), str):
            found += 1
            assert each["topic"].startswith("persistent://"), each
            if isinstance(each.get("name"), str):
                assert each["name"] == short_topic_name(each["topic"]), each
        names = each.get("topics")
        # Elsewhere `topics` holds a number, or topics with all that is known of each.
        for name in names if isinstance(names, list) and all(isinstance(name, str) for name in names) else ():
            found += 1
            assert name.startswith("persistent://"), each
    return found


@pytest.mark.parametrize(
    ("title", "example"),
    [
        pytest.param(
            title, example, marks=STARTS_JVM if title.startswith("txnctl pipeline") else (), id=title
        )
        for title, example in named_topics()
    ],
)
def test_reports_name_topics_alike(
    title: str, example: Example, run: Any, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the command prints as JSON, on standard output or as an error."""
    Store.create(path)
    monkeypatch.chdir(tmp_path)
    lines = "\n".join([*prepare(example, run), *example.lines[:-1]])
    program = f'txnctl() {{ {shlex.quote(sys.executable)} -m txnctl "$@"; }}'
    script = f"{program}\n{lines}\nexport TXNCTL_OUTPUT=json\n{example.lines[-1]}\n"
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=400, check=False,
    )  # fmt: skip
    for line in (done.stdout, *done.stdout.splitlines(), *done.stderr.splitlines()):
        try:
            document = json.loads(line)
        except ValueError:
            continue
        check(document)


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands run in this process find a store."""
    monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "bank"))
    return tmp_path / "bank"


def test_of_all_that_a_transaction_touched(run: Any, path: Path) -> None:
    """Its row, its parts, and the effects of ending it; also when one of the topics is gone."""
    Store.create(path)
    with Store.open(path) as store:
        for name in ("orders", "persistent://a/b/c"):
            store.create_topic(name)
            store.create_producer(name).send(b"x")
        txn = store.begin_transaction()
        store.create_producer("persistent://a/b/c").send(b"y", txn=txn)
        store.create_producer("orders").send(b"y", txn=txn)
        store.admin.subscriptions.create_subscription("orders", "s")
    shown = run("transactions", "show", str(txn), "-o", "json").json
    assert shown["topics"] == [f"{FULL}orders", "persistent://a/b/c"]
    assert [(each["topic"], each["name"]) for each in shown["parts"]] == [
        (f"{FULL}orders", "orders"),
        ("persistent://a/b/c", "persistent://a/b/c"),
    ]
    assert "produced to orders" in run("transactions", "show", str(txn)).out
    assert "  orders, persistent://a/b/c  " in run("transactions", "list").out
    row = run("transactions", "abort", str(txn), "--dry-run", "-o", "json").json
    assert check(row) == 2
    assert check(run("produce", "orders", "-m", "x", "-o", "json").json) == 1
    assert check(run("topics", "last-message-id", "orders", "-o", "json").json) == 1


@pytest.mark.parametrize("name", ["orders", f"{FULL}orders"])
@pytest.mark.parametrize(
    "words",
    [
        ("topics", "create", "NAME"),
        ("topics", "show", "NAMEX"),
        ("subscriptions", "show", "NAME", "missing"),
        ("consume", "NAME", "--timeout", "1ms"),
    ],
)
def test_of_errors(run: Any, path: Path, words: tuple[str, ...], name: str) -> None:
    """In their details, however it was typed."""
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("orders")
    outcome = run(*[word.replace("NAME", name) for word in words], "-o", "json")
    assert outcome.status in (3, 4, 7)
    assert check(outcome.error) == 1
    assert outcome.error["details"]["topic"] == full_topic_name(
        words[2].replace("NAME", name) if words[0] == "topics" else name
    )
