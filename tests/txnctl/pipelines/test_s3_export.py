"""Exports to S3: to the byte those of this machine, whole by their _SUCCESS, and told apart where a job was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from storage import Store
from storage.errors import AlreadyExists, InvalidValue, TxnctlError
from tests.waiting import wait_for
from txnctl.pipelines import export
from txnctl.pipelines.s3_export import S3Destination

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.txnctl.s3_server import S3Server

ROOT = Path(__file__).parents[3]
VALUES = [b"text", b"", None, b"\xff\x00\xfe", 'quote " and \\ , \n line ü'.encode(), b" blank "]
KEYS = [b"k", None, b"\xc3", b"", b"a,b", "ž".encode()]


@pytest.fixture
def options(store: Store, path: str) -> dict[str, str]:
    """The source of a topic of awkward messages."""
    store.create_topic("orders")
    with store.create_producer("orders") as producer:
        producer.send_batch(VALUES, keys=KEYS, event_times=[7, *[None] * 5])
    return {"path": path, "topic": "orders"}


def kill_session(session: int) -> None:
    """Kill a process that began a session with all that came of it: its JVM, and the Python processes of that."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if int(stat.read_text().rsplit(")", 1)[1].split()[3]) == session:
                os.kill(int(stat.parent.name), signal.SIGKILL)


def local_content(directory: Path) -> list[str]:
    return sorted("".join(part.read_text() for part in directory.glob("part-*")).splitlines())


def content(s3: S3Server, directory: str) -> list[str]:
    return local_content(s3.bucket / directory)


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_text_of_an_export_on_s3_is_that_of_this_machine(
    spark: SparkSession, options: dict[str, str], s3: S3Server, tmp_path: Path, format_: str
) -> None:
    """To the byte, although tasks write through PyArrow; the directory is whole by its _SUCCESS."""
    messages = export.read_topic(spark, options)
    assert export.export_rows(messages, str(tmp_path / "out"), format_) == len(VALUES)
    assert export.export_rows(messages, s3.uri(format_, "s3a"), format_) == len(VALUES)
    assert content(s3, format_) == local_content(tmp_path / "out")
    names = s3.names(format_)
    assert names[0] == "_SUCCESS"
    assert all(name.startswith("part-0000") and name.endswith(f".{format_}") for name in names[1:])


def test_a_whole_bucket_is_no_destination(s3: S3Server) -> None:
    """--overwrite would remove all that is in it."""
    with pytest.raises(InvalidValue, match="s3://bank is a whole bucket"):
        S3Destination("s3://bank")


def test_an_export_replaces_another_only_if_asked(
    spark: SparkSession, options: dict[str, str], s3: S3Server
) -> None:
    """What was there stays until the new files are complete, also where a row fails; an empty topic has columns."""
    from pyspark.sql import functions as f

    uri = s3.uri("replaced")
    messages = export.read_topic(spark, options)
    assert export.export_rows(messages, uri, "parquet") == len(VALUES)
    first = s3.names("replaced")
    table = pq.read_table(s3.bucket / "replaced")
    assert sorted(table["value"].to_pylist(), key=str) == sorted(VALUES, key=str)
    with pytest.raises(AlreadyExists, match=r"s3://bank/replaced exists already$"):
        export.export_rows(messages, uri, "parquet")
    broken = messages.withColumn("txnId", f.raise_error(f.lit("broken")).cast("string"))
    with pytest.raises(TxnctlError, match="broken"):
        export.export_rows(broken, uri, "parquet", overwrite=True)
    assert s3.names("replaced") == first
    export.export_rows(messages.where("false"), uri, "parquet", overwrite=True)
    assert len(s3.names("replaced")) == 2
    empty = pq.read_table(s3.bucket / "replaced")
    assert (empty.num_rows, empty.schema.names) == (0, table.schema.names)


def test_an_export_that_is_killed_is_told_from_a_whole_one(
    start: Callable[..., subprocess.Popen[bytes]],
    run: Any,
    spark: SparkSession,
    options: dict[str, str],
    s3: S3Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed while its files get their names: no _SUCCESS, the next export refuses, and --overwrite makes it whole."""
    monkeypatch.setenv("TXNCTL_STORE", options["path"])
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    s3.hold.touch()
    with start("pipeline", "export", "orders", "s3://bank/cut", start_new_session=True) as process:
        wait_for(lambda: process.poll() is not None or s3.names("cut"), "a file has its name", 120)
        assert process.poll() is None, process.stderr.read()
        kill_session(process.pid)
    s3.hold.unlink()
    assert "_SUCCESS" not in s3.names("cut")
    assert all(name.startswith(("_partial-", "part-")) for name in s3.names("cut"))
    (s3.bucket / "cut" / "part-00000-0.snappy.parquet").write_bytes(b"moved")
    refused = run("pipeline", "export", "orders", "s3://bank/cut")
    assert "s3://bank/cut exists already, of an export that did not end" in refused.err
    export.export_rows(export.read_topic(spark, options), s3.uri("cut"), "json", overwrite=True)
    assert len([json.loads(line) for line in content(s3, "cut")]) == len(VALUES)
    visible = [name for name in s3.names("cut") if not name.startswith("_partial-")]
    assert visible[0] == "_SUCCESS"
    old = os.stat(s3.bucket).st_mtime - 48 * 3600
    for path in (s3.bucket / "cut").rglob("*"):
        os.utime(path, (old, old))
    S3Destination("s3://bank/cut").remove_orphans(int(time.time() * 1000))
    assert s3.names("cut") == visible
