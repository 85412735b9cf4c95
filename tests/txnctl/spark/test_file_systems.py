"""Staged files, offloaded files, input and exports on S3: one local server for all of these tests, and real requests.

Credentials, region and endpoint come from the variables of AWS, or, where a process of Spark was started without them,
from the parameters of the URI.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import fs

from storage import Store
from storage.errors import BadLine, InvalidValue, OffloadInvalid, TxnctlError
from tests.txnctl.s3_server import KEY, S3Server
from tests.txnctl.spark.offload_steps import COMMITTED, fill, rows, span
from tests.txnctl.spark.sink.staging_steps import WRITE, packed, read, staged
from txnctl.files.input_parts import InputOptions
from txnctl.files.message_rows import MessageColumns
from txnctl.pipelines import export, files, ingest, streaming
from txnctl.spark import file_systems, read_topic
from txnctl.spark.ledger_files import upkeep
from txnctl.spark.ledger_files.offload import offload
from txnctl.spark.ledger_files.range_plan import file_partitions
from txnctl.spark.ledger_files.root import Root
from txnctl.spark.sink.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
VALUES = [b"text", b"", None, b"\xff\x00\xfe", 'quote " and \\ , \n line ü'.encode(), b" blank "]
KEYS = [b"k", None, b"\xc3", b"", b"a,b", "ž".encode()]

STAGING = """
import sys
from txnctl.spark.sink.staging import Staging, file_name
from storage.topic.batching import columns_of, entries_of
entries = entries_of(columns_of([bytes(1 << 20)] * 12, None, None, None))
with Staging.at(sys.argv[1]).writing("write-00000000000000aa", file_name(0, 0, "0123456789abcdef")) as file:
    for entry in entries:
        file.add("t", entry)
    print("written", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("given", "shown", "for_spark", "for_arrow"),
    [
        ("s3://b/x.csv", "s3://b/x.csv", "s3a://b/x.csv", "s3://b/x.csv"),
        ("S3A://b/x", "S3A://b/x", "s3a://b/x", "s3://b/x"),
        ("s3n://k:s%2F@b/x?region=r", "s3n://b/x", "s3a://b/x", "s3://k:s%2F@b/x?region=r"),
        ("hdfs://h:8020/x?.csv", "hdfs://h:8020/x?.csv", "hdfs://h:8020/x?.csv", "hdfs://h:8020/x?.csv"),
        ("/x?a=b@c", "/x?a=b@c", "/x?a=b@c", "/x?a=b@c"),
        ("s3x/y", "s3x/y", "s3x/y", "s3x/y"),
    ],
)
def test_each_reader_gets_the_uri_that_it_knows(
    given: str, shown: str, for_spark: str, for_arrow: str
) -> None:
    """Messages show neither credentials nor parameters; a path is left as it is."""
    assert file_systems.without_secrets(given) == shown
    assert file_systems.spark_uri(given) == for_spark
    assert file_systems.arrow_uri(given) == for_arrow


def test_a_uri_of_this_machine_is_a_directory_of_it(tmp_path: Path) -> None:
    """Also with one slash, which was taken for a relative path."""
    for uri in (f"file:{tmp_path}", f"file://{tmp_path}", str(tmp_path)):
        assert Root.of_path(uri).open_filesystem()[1] == str(tmp_path)
        assert Root.of_path(uri).for_spark("x") == f"file://{tmp_path}/x"


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_offloaded_ledgers_are_read_from_s3(store: Store, s3: S3Server, scheme: str) -> None:
    """Every message once, with its state; the files are what was written, and nothing else lies there."""
    fill(store)
    root = Root.of_path(f"{scheme}://bank/offloaded/{scheme}")
    done = offload(store, "t", root)
    upkeep.verify(done.directory, done.manifest)
    whole = span(store, COMMITTED)
    assert rows(file_partitions(store, [whole], root.uri)) == rows([whole])
    assert offload(store, "t", root).added == []
    kinds = {name.split("/")[2] for name in s3.names(f"offloaded/{scheme}")}
    assert kinds == {"ledgers", "manifests", "ranges"}


def test_staged_files_on_s3_go_with_their_write(s3: S3Server) -> None:
    """They are read back, and removed; no object is left that no file needs."""
    staging = Staging.at("s3a://bank/staging")
    staging.make_directory()
    file = staged(staging, {"a": packed(b"1", b"2")})
    assert [count for count, _ in read(staging, file, "a")] == [2]
    staging.remove(WRITE)
    assert s3.names("staging") == []
    assert list((s3.bucket / "staging" / WRITE).glob("*")) == []


def test_a_task_that_is_killed_leaves_nothing_on_s3(s3: S3Server) -> None:
    """A file is seen when it is closed: parts that were sent before are no object."""
    Staging.at("s3://bank/killed").make_directory()
    child = subprocess.Popen(
        [sys.executable, "-c", STAGING, "s3://bank/killed"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"written\n"
        child.kill()
    assert s3.names("killed") == []
    assert Staging.at("s3://bank/killed").collect(2**62) == []


def test_a_uri_that_cannot_be_used_is_named_without_its_secret(
    run: Any, s3: S3Server, store: Store, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong key, no bucket, a whole bucket: each said before a JVM is started."""
    monkeypatch.setenv("TXNCTL_STORE", path)
    fill(store)
    wrong = s3.uri("x").replace(KEY, "WRONGKEY")
    for words in (("offload", "t", wrong), ("export", "t", wrong)):
        outcome = run("pipeline", *words)
        assert outcome.status != 0
        assert "s3://bank/x" in outcome.err
        assert not [word for word in ("WRONGKEY", "secret", "endpoint_override") if word in outcome.err]
    with pytest.raises(OffloadInvalid, match=r"cannot be used: .*NO_SUCH_BUCKET"):
        offload(store, "t", Root.of_path("s3://missing/x"))
    with pytest.raises(TxnctlError, match="Bucket 'missing' not found"):
        Staging.at("s3://missing/x").make_directory()


@pytest.fixture
def options(store: Store, path: str) -> dict[str, str]:
    """The source of a topic of awkward messages."""
    store.create_topic("orders")
    with store.create_producer("orders") as producer:
        producer.send_batch(VALUES, keys=KEYS, event_times=[7, *[None] * 5])
    return {"path": path, "topic": "orders"}


def test_spark_reads_and_writes_through_s3(
    spark: SparkSession, store: Store, options: dict[str, str], s3: S3Server
) -> None:
    """offloadPath, stagingPath and files to ingest need no jar; what needs one says so."""
    place = {"offloadPath": s3.uri("read", "s3a")}
    messages = spark.read.format("txnctl").options(**options, **place).load()
    copy = {"path": options["path"], "topic": "copy", "createTopic": "true", "stagingPath": s3.uri("written")}
    messages.select("key", "value").write.format("txnctl").mode("append").options(**copy).save()
    with store.reader("copy") as reader:
        assert [message.value for message in reader] == VALUES
    assert s3.names("written") == []
    with pytest.raises(InvalidValue, match="this Spark has no file system for s3a://"):
        read_topic(spark, **options, **place)
    system, _ = fs.FileSystem.from_uri("s3://bank")

    def ingested(place: str, format_: str) -> int:
        columns, form = MessageColumns("value", "key"), InputOptions(format_)
        parts = ingest.plan_files([s3.uri(place)], columns, form)
        return ingest.ingest_files(spark, parts, target, columns, form).messages

    target = {"path": options["path"], "topic": "input", "createTopic": "true"}
    for name, content in (
        ("input/a.csv", b'key,value\nB1,"a\nb"\n'),
        ("b.csv", b"key,value\nB1\n"),
        ("lines/10:15.json", b'{"key":"B1","value":"1"}\n' * 3),
        ("lines/below/b.json", b'{"key":"B1","value":"1"}\n'),
        ("lines/_part", b"x"),
    ):
        with system.open_output_stream(f"bank/{name}") as file:
            file.write(content)
    assert ingested("input", "csv") == 1
    with pytest.raises(BadLine, match=r"^s3://bank/b.csv: line 2: 1 column"):
        ingested("b.csv", "csv")
    assert ingested("lines", "json") == 4
    assert ingested("lines/*/*.json", "json") == 1
    stream = spark.readStream.format("txnctl").options(**options, startingPosition="earliest").load()
    with pytest.raises(InvalidValue, match="this Spark has no file system for s3a://"):
        streaming.Stream(stream, lambda *_: None, files.uri_to_write("s3://bank/checkpoint"), None).wait()
    with pytest.raises(InvalidValue, match="this Spark has no file system for foo://"):
        export.export_rows(messages, "foo://bank/x", "json")
