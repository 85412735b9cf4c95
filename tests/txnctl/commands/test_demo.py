"""`txnctl demo`."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import pty
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage import Store, TxnctlError
from txnctl.demo import generator
from txnctl.demo.casualty import start_and_kill
from txnctl.demo.clients import ClientA1
from txnctl.demo.csv_file import read_bank_csv
from txnctl.demo.narrator import Narrator
from txnctl.demo.script import Script, messages_of
from txnctl.demo.story import play
from txnctl.demo.transaction import COLUMNS, BankTransaction
from txnctl.pipelines.hellers import format_hellers

SMALL = ("--accounts", "6", "--seed", "4")


# The real bank data has no licence to be shipped; where it lies beside the checkout it is played too.
REAL_DATA = Path(__file__).parents[4] / "shared" / "data" / "berka_sample.csv"


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


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which the demo makes its temporary stores."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setattr("tempfile.tempdir", None)
    return directory


def failed(facts: dict[str, Any]) -> list[Any]:
    """The checks that did not hold."""
    return [check for check in facts["checks"] if not check["ok"]]


def sparse(lines: list[BankTransaction]) -> list[BankTransaction]:
    """The lines with remittances near the middle and at the very end only, as where they cluster in a month."""
    last = max(place for place, line in enumerate(lines) if line.is_remittance)
    middle = range(len(lines) // 2, len(lines) // 2 + 300)
    return [line for place, line in enumerate(lines) if not line.is_remittance or place in (*middle, last)]


@pytest.mark.parametrize("make", [list, sparse])
def test_thousands_arrive_behind_the_open_transfer(
    make: Callable[[list[BankTransaction]], list[BankTransaction]],
) -> None:
    """The transfer stands in the midst of the data, however remittances cluster: else nothing would wait for it."""
    script = Script(make(list(generator.generate())))
    parts = (script.opening, [script.transfer], script.meanwhile, script.closing)
    assert [line for part in parts for line in part] == script.lines
    assert script.transfer.is_remittance
    assert min(len(script.opening), len(script.meanwhile)) > 5_000
    assert len(script.closing) > 1_000


def test_the_story_holds_to_the_last_heller(run: Callable[..., Any], temporary: Path) -> None:
    """As JSON: every check held, all accounts agree, D saw two messages more than E, the store is gone."""
    facts = run("demo", *SMALL, "-o", "json").json
    assert facts["ok"] is True
    assert failed(facts) == []
    assert len(facts["checks"]) > 30
    lines = list(generator.generate(6, 4))
    audit = facts["audit"]
    assert audit["accounts"] == audit["accountsAgreeing"] == facts["accounts"] == 6
    assert audit["requestsBooked"] == audit["committedMessages"] == messages_of(lines)
    assert audit["monitorSaw"] == audit["storedMessages"] == messages_of(lines) + 2
    assert facts["blocked"]["delivered"] == 0
    assert facts["blocked"]["blocked"] > 300
    assert facts["ordinary"]["booked"] > 300
    assert facts["aborted"]["booked"] > 50
    assert facts["committed"]["caughtUp"] == facts["blocked"]["blocked"] + 2
    assert facts["committed"]["killed"]["requests"] > 0
    assert facts["committed"]["killed"]["accounts"] > 0
    assert (facts["kept"], facts["source"], facts["seed"]) == (False, None, 4)
    assert list(temporary.iterdir()) == []


def test_people_are_told_the_same(run: Callable[..., Any], temporary: Path) -> None:
    """As text: the acts by number, the positions and the counts, no escape codes, nothing on standard error."""
    outcome = run("demo", *SMALL)
    assert (outcome.status, outcome.err) == (0, "")
    assert [line.partition(".")[0] for line in outcome.out.splitlines() if line[:1].isdigit()] == list(
        "1234567"
    )
    for words in (
        "READ_UNCOMMITTED",
        "maxReadPosition",
        "SIGKILL",
        "6 of 6 accounts agree",
        "temporary and is gone",
    ):
        assert words in outcome.out
    assert "FAILED" not in outcome.out
    assert "\x1b" not in outcome.out
    assert max(len(line) for line in outcome.out.splitlines()) <= 120
    assert list(temporary.iterdir()) == []


def test_colour_is_there_when_it_is_asked_for(run: Callable[..., Any], temporary: Path) -> None:
    """`--color always` colours; the words stay the same."""
    assert "\x1b[32mok\x1b[0m" in run("demo", *SMALL, "--color", "always").out
    assert list(temporary.iterdir()) == []


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


def test_a_wrong_balance_is_found(tmp_path: Path) -> None:
    """A balance that the requests do not lead to is told by account, with both figures."""
    lines = list(generator.generate(3, 1))
    last = {line.account_id: line for line in lines}
    account, line = sorted(last.items())[1]
    line.balance += 100
    told: list[str] = []
    narrator = Narrator(told.append)
    path = str(tmp_path / "store")
    Store.create(path)
    with Store.open(path) as store:
        facts = play(store, path, Script(lines), narrator)
        assert store.maintenance.verify_store() == []
    wrong = [check for check in narrator.checks if not check.ok]
    assert {check.actual for check in wrong} == {"2 of 3 accounts"}
    assert any(check.name.startswith("balance equals the data's own") for check in wrong)
    assert facts["audit"]["accountsAgreeing"] == 2  # type: ignore[index]
    had = format_hellers(line.balance - 100)
    assert any(
        f"account {account}: the table has {had}, the data says {format_hellers(line.balance)}" in text
        for text in told
    )


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


def test_a_pause_waits_on_a_terminal(start: Callable[..., subprocess.Popen[bytes]], temporary: Path) -> None:
    """--pause: while the transfer is open the demo names commands to try, and goes on at Enter."""
    ours, theirs = pty.openpty()
    with start("demo", *SMALL, "--pause", "--color", "never", stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        told = ""
        while "transactions show" not in told:
            told += os.read(ours, 4096).decode()
        (proposed,) = [
            line.split("$ txnctl ", 1)[1] for line in told.splitlines() if "subscriptions lag" in line
        ]
        with start(*proposed.split(), "-o", "json") as looking:
            rows = json.loads(looking.communicate()[0])
        assert {row["subscription"]: row["blocked"] > 0 for row in rows} == {
            "business-E": True,
            "monitor-D": False,
        }
        os.write(ours, b"\n")
        # A terminal that nobody reads would stop the writer; when it has ended, reading fails.
        with contextlib.suppress(OSError):
            while os.read(ours, 4096):
                pass
        assert process.wait() == 0
    os.close(ours)
    assert list(temporary.iterdir()) == []


def test_every_bank_at_hand_agrees(tmp_path: Path) -> None:
    """Generated banks of several seeds, and the real data where it lies beside the checkout."""
    banks = [list(generator.generate(accounts, seed)) for accounts, seed in ((3, 77), (12, 5))]
    if REAL_DATA.exists():
        banks.append(list(read_bank_csv(str(REAL_DATA))))
    for number, lines in enumerate(banks):
        path = str(tmp_path / str(number))
        narrator = Narrator()
        Store.create(path)
        with Store.open(path) as store:
            facts: dict[str, Any] = play(store, path, Script(lines), narrator)
        assert [check.as_dict() for check in narrator.checks if not check.ok] == []
        assert facts["audit"]["accountsAgreeing"] == len({line.account_id for line in lines})
        # Nothing is proved by a transfer behind which nothing arrives.
        assert facts["blocked"]["blocked"] > len(lines) // 5


def test_a_client_that_fails_is_named_in_one_line(tmp_path: Path) -> None:
    """Client A1 without a store to work on: an error that says who and why, and keeps all that was said."""
    lines = [line for line in generator.generate(1, 1) if not line.is_remittance]
    with (
        pytest.raises(TxnctlError, match=r"client A1, a process of its own, failed: .*missing") as caught,
        ClientA1(str(tmp_path / "missing"), lines),
    ):
        pass
    assert "\n" not in caught.value.message
    assert caught.value.details["status"] == 6
    with pytest.raises(TxnctlError, match=r"E, a process of its own, failed: .*StoreNotFound"):
        start_and_kill(str(tmp_path / "missing"))
