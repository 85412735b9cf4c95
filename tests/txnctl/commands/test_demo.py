"""`txnctl demo`."""

from __future__ import annotations

import csv
import gzip
import io
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.txnctl.demo_steps import SMALL, failed
from txnctl.demo import generator
from txnctl.demo.transaction import COLUMNS, BankTransaction
from txnctl.pipelines.hellers import format_hellers


def write_csv(path: Path, lines: list[BankTransaction]) -> str:
    """Write lines as a file in the format of --data, gzip if its name says so."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for line in lines:
        fields = {name: getattr(line, name) for name in COLUMNS}
        for name in ("amount", "balance", "delta"):
            fields[name] = format_hellers(fields[name])
        writer.writerow(fields.values())
    raw = text.getvalue().encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return str(path)


def test_a_file_of_transactions_is_played(run: Callable[..., Any], tmp_path: Path, temporary: Path) -> None:
    """--data takes CSV, gzip too, and says where it came from."""
    path = write_csv(tmp_path / "bank.csv.gz", list(generator.generate(5, 11)))
    facts = run("demo", "--data", path, "-o", "json").json
    assert failed(facts) == []
    assert (facts["source"], facts["seed"], facts["accounts"]) == (path, None, 5)
    assert list(temporary.iterdir()) == []


def test_a_named_store_stays_and_can_be_looked_into(
    run: Callable[..., Any], tmp_path: Path, temporary: Path
) -> None:
    """With --store the store is kept; the commands that the demo proposes run on it; a second demo is refused."""
    store = str(tmp_path / "bank.store")
    outcome = run("demo", *SMALL, "--store", store)
    assert outcome.status == 0
    assert f"The store is kept: {store}" in " ".join(outcome.out.split())
    proposed = [line.split("$ ", 1)[1] for line in outcome.out.splitlines() if "$ txnctl" in line]
    assert len(proposed) >= 5
    for line in proposed:
        words = line.partition(" | ")[0].split()[1:]
        tried = run(*words, "--store", store)
        assert tried.status == 0, line
        assert tried.out, line
    assert run("store", "verify", "--full", "--store", store).status == 0
    balances = {
        row["key"]: row["value"] for row in run("tables", "export", "accounts", "--store", store).rows
    }
    last = {line.account_id: line.balance for line in generator.generate(6, 4)}
    assert {key: value for key, value in balances.items() if not key.startswith("bank:")} == {
        str(account): format_hellers(balance) for account, balance in last.items()
    }
    before = sorted(path.stat().st_mtime_ns for path in Path(store).iterdir())
    again = run("demo", *SMALL, "--store", store)
    assert (again.status, again.out) == (4, "")
    assert sorted(path.stat().st_mtime_ns for path in Path(store).iterdir()) == before
    assert list(temporary.iterdir()) == []


def test_keep_leaves_the_temporary_store(run: Callable[..., Any], temporary: Path) -> None:
    """--keep: the store is where the result says."""
    facts = run("demo", *SMALL, "--keep", "-o", "json").json
    assert facts["kept"] is True
    assert Path(facts["store"]).is_relative_to(temporary)
    with Store.open(facts["store"], read_only=True) as store:
        assert store.maintenance.verify_store() == []
    assert run("demo", *SMALL, "-o", "name").out.startswith(str(temporary))


def test_the_users_store_is_never_the_demos(
    run: Callable[..., Any], tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TXNCTL_STORE, existing or not, is left alone."""
    mine = tmp_path / "mine"
    monkeypatch.setenv("TXNCTL_STORE", str(mine))
    assert run("demo", *SMALL).status == 0
    assert not mine.exists()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("format_words", [(), ("-o", "json")])
def test_bad_data_is_named_before_anything_is_made(
    format_words: tuple[str, ...], run: Callable[..., Any], tmp_path: Path, temporary: Path
) -> None:
    """A balance that contradicts the line before: exit 2, the line's number, no store, nothing on standard output."""
    lines = list(generator.generate(3, 1))
    lines[40].balance += 1
    outcome = run(
        "demo",
        "--data",
        write_csv(tmp_path / "bad.csv", lines),
        "--store",
        str(tmp_path / "s"),
        *format_words,
    )
    assert (outcome.status, outcome.out) == (2, "")
    assert "line 42: account" in outcome.err
    assert not (tmp_path / "s").exists()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("--data", "missing.csv"),
        ("--data", "."),
        ("--data", os.devnull),
        ("--accounts", "0"),
        ("--accounts", "many"),
        ("--seed", "-1"),
        ("--pause",),
        ("--data", __file__),
        ("--data", "x.csv", "--seed", "1"),
    ],
)
def test_bad_options_are_refused(words: tuple[str, ...], run: Callable[..., Any], temporary: Path) -> None:
    """Exit 2, one error, nothing made."""
    outcome = run("demo", *words)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("txnctl: error: ")
    assert list(temporary.iterdir()) == []


def test_transactions_without_a_remittance_are_refused(
    run: Callable[..., Any], tmp_path: Path, temporary: Path
) -> None:
    """There is nothing to leave open; the error says so."""
    lines = [line for line in generator.generate(1, 0) if line.acct_seq <= 3]
    outcome = run("demo", "--data", write_csv(tmp_path / "plain.csv", lines))
    assert outcome.status == 2
    assert "no remittance" in outcome.err
    assert list(temporary.iterdir()) == []


def test_the_smallest_bank_with_a_remittance_will_do(
    run: Callable[..., Any], tmp_path: Path, temporary: Path
) -> None:
    """Two lines, nothing behind the open transfer: every check still holds."""
    lines = [
        BankTransaction(1, 5, "1995-01-01", "PRIJEM", "VKLAD", 10000, 10000, "", "", "", 1, 10000, "G"),
        BankTransaction(2, 5, "1995-01-02", "VYDAJ", "PREVOD NA UCET", 1, 9999, "", "AB", "7", 2, -1, "G"),
    ]
    for kept in (lines, [lines[1]]):
        kept[-1].balance = sum(line.delta for line in kept)
        outcome = run("demo", "--data", write_csv(tmp_path / "two.csv", kept), "-o", "json")
        assert outcome.status == 0, outcome
        assert failed(outcome.json) == []
    assert list(temporary.iterdir()) == []


def test_a_failed_check_fails_the_command(
    run: Callable[..., Any], temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 1 with the first failed check named, and the store is kept as evidence."""
    lines = list(generator.generate(3, 1))
    lines[-1].balance += 1
    monkeypatch.setattr(generator, "generate", lambda accounts, seed: iter(lines))
    outcome = run("demo", "-o", "json")
    assert outcome.status == 1
    assert outcome.json["ok"] is False
    assert "checks of the demo failed, the first: " in outcome.error["message"]
    assert Path(outcome.error["details"]["store"]).is_dir()
    assert outcome.error["details"]["failed"] == [check["name"] for check in failed(outcome.json)]


def test_a_closed_pipe_ends_the_demo_quietly(
    start: Callable[..., subprocess.Popen[bytes]], temporary: Path
) -> None:
    """`| head -1`: 141, nothing on standard error, and the temporary store is removed."""
    with start("demo", "--accounts", "20") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141
    assert list(temporary.iterdir()) == []


def test_an_interrupt_leaves_nothing_behind(
    start: Callable[..., subprocess.Popen[bytes]], temporary: Path
) -> None:
    """Ctrl-C in the middle: 130, and the temporary store is removed."""
    with start("demo", "--accounts", "400") as process:
        assert process.stdout is not None
        while b"Ordinary" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert list(temporary.iterdir()) == []
