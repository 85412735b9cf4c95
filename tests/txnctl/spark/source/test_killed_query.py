"""A streaming query whose driver is killed and whose tasks fail, in processes of its own."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from storage import Store
from tests.processes.child import Child
from tests.row_json import row_json
from tests.waiting import wait_for
from txnctl.spark.sink import progress

PATIENCE_S = 240.0
FILES = 3


def write_source(directory: Path) -> list[bytes]:
    """A file for each micro-batch, one second apart, so that they are taken in order; all lines in order."""
    directory.mkdir()
    lines = []
    for number in range(FILES):
        batch = [f"{number}-{line}" for line in range(50)] + ["fail"] * (number % 2)
        path = directory / f"{number}.txt"
        path.write_text("".join(f"{line}\n" for line in batch))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        lines += [line.encode() for line in batch]
    return lines


@pytest.mark.needs_program("java")
def test_each_row_once(store: Store, tmp_path: Path) -> None:
    """SIGKILL of the driver after its first micro-batch, a task that fails in the next: every row is there once."""
    store.create_topic("t")
    progress.make_table(store)
    lines = write_source(tmp_path / "source")
    command = [
        "-m",
        "tests.txnctl.spark.query",
        store.path,
        str(tmp_path / "source"),
        str(tmp_path / "checkpoint"),
    ]
    first, second = Child(command), None
    try:
        jvm = int(first.expect("jvm", PATIENCE_S))
        sinks = store.table(progress.SINKS)
        wait_for(
            lambda: not first.is_running or any(True for _ in sinks.scan()), "a batch is stored", PATIENCE_S
        )
        assert first.is_running, first.complaint()
        os.kill(jvm, signal.SIGKILL)
        first.kill()
        second = Child(command)
        second.expect("jvm", PATIENCE_S)
        query = second.expect("done", PATIENCE_S)
        second.succeed(60)
    finally:
        for child in (first, second):
            if child is not None:
                child.close()
    found = [message.value for message in store.reader("t")]
    assert Counter(found) == Counter(lines)
    assert found == lines
    assert progress.last_batch(store, query) == FILES - 1
    assert row_json(store.reports.list_transactions()) == []
