"""`txnctl pipeline offload`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage import Store

Run = Callable[..., Any]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store with two closed ledgers, of three messages each, and an open one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "store"))
    Store.create(tmp_path / "store")
    with Store.open(tmp_path / "store") as opened:
        opened.create_topic("orders", ledger_entries_max=3)
        fill(opened, 7)
        yield opened


def fill(store: Store, messages: int) -> None:
    with store.create_producer("orders") as producer:
        for number in range(messages):
            producer.send(b"%d" % number)


def test_closed_ledgers_are_offloaded_and_told(store: Store, run: Run):
    """The table says how much came and how much there is; the second run finds nothing to do."""
    done = run("pipeline", "offload", "orders", "there", "--verify")
    assert done.status == 0
    first, second, third = done.out.splitlines()
    assert first.startswith("Offloaded 2 ledgers with 6 messages (")
    assert first.endswith(f"/there/{store.identity}/topic-1.")
    assert second.startswith("There now: 2 ledgers with 6 messages in 1 file (") and second.endswith(
        "up to 2:2."
    )
    assert third == "Every file is as it was written."
    again = run("pipeline", "offload", "orders", "there")
    assert again.out.startswith("No closed ledger that is not in ")


def test_the_row_has_what_the_table_says(store: Store, run: Run):
    """As JSON, with the files themselves to look at."""
    row = run("pipeline", "offload", "orders", "there", "-o", "json").json
    assert (row["ledgers"], row["messages"], row["allMessages"], row["through"]) == (2, 6, 6, "2:2")
    assert (row["verified"], row["undecidedLedgers"], row["removedFiles"]) == (False, 0, 0)
    files = list(Path("there").rglob("ledgers/*.parquet"))
    assert [file.stat().st_size for file in files] == [row["bytes"]]
    assert Path("there", store.identity, "topic-1").samefile(row["place"].removeprefix("file://"))


def test_ledgers_behind_an_open_transaction_are_counted(store: Store, run: Run):
    """They are told of, and left out until it has ended."""
    txn = store.transaction()
    with store.create_producer("orders") as producer:
        producer.send(b"open", txn=txn)
    fill(store, 5)
    done = run("pipeline", "offload", "orders", "there")
    assert done.out.splitlines()[-1] == "2 closed ledgers more, once the open transactions have ended."
    txn.abort()


def test_what_nobody_needs_is_removed_when_it_is_old_enough(store: Store, run: Run):
    """`--keep 0s` leaves the manifest that counts, and the files it names."""
    run("pipeline", "offload", "orders", "there")
    fill(store, 6)
    assert run("pipeline", "offload", "orders", "there", "-o", "json").json["removedFiles"] == 0
    assert (
        run("pipeline", "offload", "orders", "there", "--keep", "0s", "-o", "json").json["removedFiles"] == 1
    )
    assert run("pipeline", "offload", "orders", "there", "--verify").status == 0


def test_a_damaged_file_ends_it_with_a_name_and_advice(store: Store, run: Run):
    """Exit code 6: the file is named, and what to do."""
    run("pipeline", "offload", "orders", "there")
    (file,) = Path("there").rglob("ledgers/*.parquet")
    file.write_bytes(file.read_bytes()[:-1])
    done = run("pipeline", "offload", "orders", "there", "--verify", "-o", "json")
    assert (done.status, done.out, done.error["code"]) == (6, "", "offload-invalid")
    assert file.name in done.err and "offload the topic again" in done.err


@pytest.mark.parametrize(
    ("topic", "place", "status", "words"),
    [
        ("nothing", "there", 3, "there is no topic nothing"),
        ("orders", "ftp://host/x", 2, "is not a directory of a known file system"),
    ],
)
def test_what_is_not_there_is_an_error(
    store: Store, run: Run, topic: str, place: str, status: int, words: str
):
    """A missing topic, and a place that no file system answers to; nothing is created."""
    done = run("pipeline", "offload", topic, place)
    assert done.status == status and words in done.err
    assert not Path("there").exists()


def test_a_place_that_cannot_be_written_is_an_error(store: Store, run: Run):
    """A file stands where the directory should be: the error names it, without a traceback."""
    Path("there").write_text("")
    done = run("pipeline", "offload", "orders", "there")
    assert done.status not in (0, 1) and "Traceback" not in done.err and "there" in done.err
