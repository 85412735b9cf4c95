"""`txnctl pipeline ingest`: runs that repeat a --write-id."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.errors import JvmDied
from txnctl.commands.pipeline.ingest import _told_to_look

Start = Callable[..., "subprocess.Popen[bytes]"]


def ingested(start: Start, *words: str) -> str:
    """The output of the command in a process of its own: the tests' session of Spark is in this one."""
    process = start("pipeline", "ingest", *words)
    out, err = process.communicate()
    assert process.returncode == 0, err.decode()
    return str(out.decode())


@pytest.fixture
def requests(path: str) -> Iterator[Store]:
    """The store with the topic `requests`, and a file of two rows in the current directory."""
    Path("in.csv").write_text("account,delta\nB1,5\nB2,7\n")
    with Store.open(path) as store:
        store.create_topic("others")
        yield store


@pytest.mark.needs_program("java")
def test_the_same_input_again_is_named_and_not_parsed(
    run: Any, start: Start, requests: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of the file under a different name is the same input. The second run needs no Spark at all."""
    words = ("requests", "--key-column", "account", "--write-id", "may")
    done = json.loads(ingested(start, "in.csv", *words, "-o", "json"))
    assert (done["messages"], done["storedBefore"]) == (2, None)
    Path("in.csv").rename("copy.csv")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    again = run("pipeline", "ingest", "copy.csv", *words, "-o", "json").json
    (txn,) = {str(message.txn_id) for message in requests.reader("requests")}
    assert (again["messages"], again["storedBefore"]["txnId"]) == (2, txn)
    said = run("pipeline", "ingest", "copy.csv", *words).out
    assert said.startswith(
        "Nothing was stored: 2 messages in requests were stored under this id\nby transaction "
    )
    assert len(list(requests.reader("requests"))) == 2

    Path("copy.csv").write_text("account,delta\nB1,5\nB2,8\n")
    for other in (
        ("requests",),
        ("requests", "--key-column", "delta"),
        ("others", "--key-column", "account"),
    ):
        refused = run("pipeline", "ingest", "copy.csv", *other, "--write-id", "may")
        assert refused.status == 4
        assert "write id may was used for a different write" in refused.err
        assert "\\n" not in refused.err
        assert f"2 rows in requests, by transaction {txn} at" in refused.err
    requests.admin.topics.delete_topic("requests")
    requests.create_topic("requests")
    Path("copy.csv").write_text("account,delta\nB1,5\nB2,7\n")
    refused = run("pipeline", "ingest", "copy.csv", *words)
    assert (refused.status, "topic requests was deleted since" in refused.err) == (4, True)


@pytest.mark.needs_program("java")
def test_a_run_of_the_first_release_cannot_be_compared(start: Start, requests: Store) -> None:
    """Its row has no content: topic and number of rows decide, and the answer says so."""
    requests.create_table("txnctl-sinks")
    row = {
        "batchId": 0,
        "rows": 2,
        "topics": ["persistent://public/default/requests"],
        "at": "x",
        "txnId": "0:9",
    }
    requests.table("txnctl-sinks").put(b"write:may", json.dumps(row).encode())
    said = ingested(start, "in.csv", "requests", "--write-id", "may")
    assert "whether it was the same cannot be\ncompared. Topic and number of rows agree." in said
    assert list(requests.reader("requests")) == []


@pytest.mark.needs_program("java")
def test_rows_that_were_left_out_are_told_with_their_reason(start: Start, requests: Store) -> None:
    """In the summary for people, and as JSON."""
    Path("in.csv").write_text("account,delta\nB1,5\nB2\nB3,1,2\nB4\n")
    said = ingested(start, "in.csv", "requests", "--on-error", "skip")
    first, *reasons = said.splitlines()
    assert first.startswith("Stored 1 message in requests; left out 3 rows. ")
    assert reasons == [
        "Left out 2 rows: 1 column, where the header has 2",
        "Left out 1 row: 3 columns, where the header has 2",
    ]


def test_files_are_refused_before_spark_starts(
    run: Any, start: Start, requests: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe, a directory whose files differ, a missing column: exit code 2, also on a machine without Java."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    words = ("requests", "--format", "json")
    for place in ("/dev/stdin", "/dev/fd/0"):
        with start("pipeline", "ingest", place, *words, stdin=subprocess.PIPE) as process:
            _, said = process.communicate(b'{"n":1}\n{"n":2}\n')
        assert (process.returncode, f"'{place}' is no regular file" in said.decode()) == (2, True)
    Path("d").mkdir()
    Path("d/a.csv").write_text("account,delta\n")
    Path("d/b.csv").write_text("account,delta,fee\n")
    for place, option, says in (("d", "account", "b.csv"), ("in.csv", "amount", "there is no column amount")):
        refused = run("pipeline", "ingest", place, "requests", "--format", "csv", "--key-column", option)
        assert (refused.status, says in refused.err) == (2, True)
    assert list(requests.reader("requests")) == []


@pytest.mark.parametrize(("write_id", "looks"), [(None, True), ("may", False)])
def test_after_a_kill_the_rows_may_be_stored(write_id: str | None, looks: bool) -> None:
    """Without a write id the hint says to look first; with one the job may run again at once."""
    with pytest.raises(JvmDied) as caught, _told_to_look("requests", write_id):
        raise JvmDied("it was killed", hint="Run it again.")
    assert ("txnctl topics peek requests" in (caught.value.hint or "")) is looks
    assert (caught.value.hint or "").endswith("Run it again.")


def test_a_cluster_needs_a_staging_path_for_a_store_on_a_server(
    run: Any, requests: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says so before it reaches for server or Spark; a password in the URL is refused, and not repeated."""
    words = (
        "pipeline",
        "ingest",
        "in.csv",
        "requests",
        "--value-column",
        "delta",
        "--master",
        "spark://here:1",
    )
    monkeypatch.setenv("TXNCTL_STORE", "postgresql://db.example/bank")
    refused = run(*words)
    assert refused.status == 2
    assert "--staging-path" in refused.err
    monkeypatch.setenv("TXNCTL_STORE", "postgresql://u:a-secret@db.example/bank")
    refused = run(*words, "--staging-path", "s3://bank/staging")
    assert refused.status == 2
    assert "has a password" in refused.err
    assert "a-secret" not in refused.err
