"""Clients whose clocks are an hour off: the server's clock counts, for delays and for ages."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from storage import EARLIEST, Store

_FAKETIME = "/usr/$LIB/faketime/libfaketime.so.1"
HOURS = ("+3600s", "-3600s")

pytestmark = [pytest.mark.needs_program("initdb"), pytest.mark.needs_program("faketime")]


def txnctl(offset: str, path: str, *words: str) -> list[dict[str, object]]:
    """Run a command on a machine whose clock differs by so many seconds; return the rows of its output."""
    done = subprocess.run(
        [sys.executable, "-m", "txnctl", *words, "--store", path, "-o", "ndjson"],
        env=os.environ | {"LD_PRELOAD": _FAKETIME, "FAKETIME": offset, "DONT_FAKE_MONOTONIC": "1"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("offset", HOURS)
def test_a_delay_begins_at_the_time_of_the_server(empty: str, offset: str) -> None:
    """The producer of a program asks the same clock of the store."""
    txnctl(offset, empty, "produce", "t", "-m", "x", "--create", "--deliver-after", "20m")
    with Store.open(empty, read_only=True) as store:
        (message,) = store.reader("t", start=EARLIEST)
        assert message.deliver_at is not None
        assert abs(message.deliver_at - message.publish_time - 1_200_000) < 60_000
        assert abs(store.connection.clock.wall_ms() - message.publish_time) < 60_000


@pytest.mark.parametrize("offset", HOURS)
def test_an_age_goes_back_from_the_time_of_the_server(empty: str, offset: str) -> None:
    """In a position, in a range, in the history of transactions and in that of a table."""
    with Store.open(empty) as store:
        store.create_topic("t")
        store.create_table("accounts")
        store.create_producer("t").send(b"new")
        store.table("accounts").put(b"a", b"1")
        store.commit_transaction(store.begin_transaction())
    assert len(txnctl(offset, empty, "consume", "t", "--from", "@10m")) == 1
    assert len(txnctl(offset, empty, "topics", "log", "t", "--range", "@10m..")) == 1
    assert len(txnctl(offset, empty, "transactions", "history", "--since", "10m")) == 2
    before = txnctl(offset, empty, "tables", "scan", "accounts", "--at", "10m")
    assert before == []
