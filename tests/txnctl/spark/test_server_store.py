"""Stores on a server: tasks read and stage by themselves, wherever they run, and no snapshot is held in between."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from scale.processes import wait_until
from storage import EARLIEST, Store
from storage.errors import InvalidValue, StoreInvalid
from tests.txnctl.spark.asked import of_messages
from txnctl.demo.cluster import Cluster, running_cluster
from txnctl.spark import options
from txnctl.spark.ledger_files.offload import offload
from txnctl.spark.ledger_files.root import Root
from txnctl.spark.sink import temporary_staging
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.topic_range import TopicRange
from txnctl.spark.source.topic_reader import plan_partitions

pytestmark = pytest.mark.needs_program("initdb")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

OUR_SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'txnctl:%'"
IN_TRANSACTION = f"{OUR_SESSIONS} AND state LIKE 'idle in transaction%'"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A primary with a synchronous standby, on sockets of its own."""
    with running_cluster() as running:
        yield running


@pytest.fixture
def url(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a store with a topic of 2,000 messages, an aborted and an open one behind, and a table."""
    name = f"s{abs(hash(request.node.name)) % 10**9}"
    place = cluster.url(name)
    Store.create(place)
    with Store.open(place) as store:
        for topic in ("one", "two"):
            store.create_topic(topic)
        store.create_table("accounts")
        producer = store.create_producer("one")
        for number in range(20):
            producer.send_batch([b"%d-%d" % (number, index) for index in range(100)])
        aborted = store.transaction()
        producer.send(b"aborted", txn=aborted)
        aborted.flush()
        aborted.abort()
        store.table("accounts").import_rows((b"B%03d" % number, b"%d" % number) for number in range(300))
    yield place
    with Store.open(place) as store:
        assert store.maintenance.verify_store(full=True) == []
    cluster.primary.ask(f'DROP SCHEMA "{name}" CASCADE')


def planned(url: str, **given: str) -> list[TopicRange]:
    parts = plan_partitions(options.topic_read({"path": url, "topic": "one", **given}))
    return [part for part in parts if isinstance(part, TopicRange)]


def values_of(parts: list[TopicRange]) -> list[bytes]:
    return [
        value.as_py()
        for part in parts
        for batch in part.batches(of_messages("value"))
        for value in batch.column(0)
    ]


def test_offloaded_files_of_a_server_are_refused(url: str, tmp_path: Path) -> None:
    """A store on a server has no need of them, and no directory whose lock orders manifests."""
    with pytest.raises(InvalidValue, match="on a server"):
        options.topic_read({"path": url, "topic": "one", "offloadPath": str(tmp_path)})
    with Store.open(url) as store, pytest.raises(InvalidValue, match="on a server"):
        offload(store, "one", Root.of_path(str(tmp_path)))


def test_the_plan_fixes_positions_and_the_fate_of_transactions(url: str) -> None:
    """Rows of a plan are the same, whatever is written, committed and aborted behind it."""
    with Store.open(url) as store:
        open_txn = store.transaction()
        producer = store.create_producer("one")
        producer.send(b"open", txn=open_txn)
        open_txn.flush()
        committed, dirty = planned(url, minPartitions="4"), planned(url, isolationLevel="READ_UNCOMMITTED")
        open_txn.commit()
        producer.send(b"later")
    assert len(committed) == 4
    values = values_of(committed)
    assert len(values) == 2000
    assert values_of(dirty) == [*values, b"aborted", b"open"]
    states = [batch.to_pylist()[-1] for part in dirty for batch in part.batches(of_messages("txnState"))]
    assert states[-1] == {"txnState": "OPEN"}


def test_no_snapshot_is_held_in_planning_or_between_batches(cluster: Cluster, url: str) -> None:
    """A task has two connections while it reads, neither in a transaction when rows are handed on, and none after."""
    before = cluster.primary.ask(OUR_SESSIONS)
    parts = planned(url)
    assert cluster.primary.ask(OUR_SESSIONS) == before
    read = parts[0].batches(of_messages("value"))
    next(read)
    assert int(cluster.primary.ask(OUR_SESSIONS)) - int(before) == 2
    assert cluster.primary.ask(IN_TRANSACTION) == "0"
    read.close()  # type: ignore[attr-defined]
    assert cluster.primary.ask(OUR_SESSIONS) == before


def test_a_role_that_may_only_select_reads_plans_and_ranges(cluster: Cluster, url: str) -> None:
    """Executors need no rights but those on the schema and to select from its tables."""
    schema = url.rpartition("store=")[2]
    cluster.primary.ask(
        f'CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA "{schema}" TO reader; '
        f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO reader'
    )
    assert len(values_of(planned(url.replace("//postgres@", "//reader@")))) == 2000


def test_a_host_without_a_way_to_the_server_is_named(url: str) -> None:
    """The error of the task has the host, and the variables that bring credentials there."""
    part = planned(url)[0]
    elsewhere = LocalStore("postgresql://postgres@/postgres?host=/nowhere&store=bank", "id")
    with pytest.raises(StoreInvalid, match="in a task on host") as refused:
        values_of([replace(part, local_store=elsewhere)])
    assert "PGPASSFILE" in "\n".join([str(refused.value.hint), *getattr(refused.value, "__notes__", [])])


def frame(spark: SparkSession, url: str, **given: str) -> DataFrame:
    return spark.read.format("txnctl").options(store=url, **given).load()


def test_spark_reads_topics_tables_and_changes(spark: SparkSession, url: str) -> None:
    """In tasks that open the store themselves, at both levels."""
    assert frame(spark, url, topic="one", minPartitions="4").count() == 2000
    assert frame(spark, url, topic="one", isolationLevel="READ_UNCOMMITTED").count() == 2001
    assert frame(spark, url, table="accounts", minPartitions="3", asOf="now").count() == 300
    assert frame(spark, url, table="accounts", keys="B007").first()["value"] == b"7"  # type: ignore[index]
    assert frame(spark, url, table="accounts", readChanges="true").count() == 300


def test_spark_writes_topics_and_tables_once(spark: SparkSession, url: str, tmp_path: Path) -> None:
    """Batches by a write id, an upsert, and a stream with a subscription as its source; no staged file is left."""
    rows = frame(spark, url, topic="one").select("value")
    for _ in range(2):
        rows.write.format("txnctl").mode("append").options(store=url, topic="two", writeId="copy").save()
    assert frame(spark, url, topic="two").count() == 2000
    upserted = spark.createDataFrame([("B000", "new")], "key string, value string")
    staging = tmp_path / "staging"
    upserted.write.format("txnctl").mode("append").options(
        store=url, table="accounts", upsert="true", stagingPath=str(staging)
    ).save()
    assert frame(spark, url, table="accounts", keys="B000").first()["value"] == b"new"  # type: ignore[index]
    assert list(staging.rglob("*.batches")) == []
    for _ in range(2):
        source = spark.readStream.format("txnctl").options(
            store=url, topic="one", startingPosition="earliest", subscription="copy"
        )
        query = (
            source.load().select("value").writeStream.format("txnctl")
            .options(store=url, topic="two", checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
    assert frame(spark, url, topic="two").count() == 4000
    assert list(Path(temporary_staging.temporary_staging_path()).rglob("*.batches")) == []


def test_spark_streams_the_changes_of_a_table(spark: SparkSession, url: str, tmp_path: Path) -> None:
    """Each change comes once, over two runs of the query."""

    def run() -> int:
        changes = spark.readStream.format("txnctl").options(store=url, table="accounts", readChanges="true")
        query = (
            changes.load().writeStream.format("parquet")
            .option("path", str(tmp_path / "out")).option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
        return spark.read.parquet(str(tmp_path / "out")).count()

    assert run() == 300
    with Store.open(url) as store:
        store.table("accounts").put(b"B000", b"more")
    assert run() == 301
    assert os.path.isdir(tmp_path / "checkpoint")


@pytest.mark.usefixtures("cluster")
def test_a_stream_goes_on_where_it_was_after_a_failover(spark: SparkSession, tmp_path: Path) -> None:
    """The primary dies between two micro-batches; by its checkpoint the query stores each message once."""
    commits = tmp_path / "checkpoint" / "commits"

    def start() -> StreamingQuery:
        source = spark.readStream.format("txnctl").options(
            store=place,
            topic="one",
            startingPosition="earliest",
            subscription="copy",
            maxMessagesPerTrigger="50",
        )
        return (
            source.load().select("value").writeStream.format("txnctl")
            .options(store=place, topic="two", checkpointLocation=str(commits.parent))
            .trigger(availableNow=True).start()
        )  # fmt: skip

    with running_cluster() as cluster:
        place = cluster.url("bank")
        Store.create(place)
        values = [b"%d" % number for number in range(400)]
        with Store.open(place) as store:
            for topic in ("one", "two"):
                store.create_topic(topic)
            producer = store.create_producer("one")
            for first in range(0, len(values), 10):
                producer.send_batch(values[first : first + 10])
        query = start()
        wait_until((commits / "0").exists, 120, "the first micro-batch is committed")
        cluster.primary.kill()
        with pytest.raises(StreamingQueryException, match="lost"):
            query.awaitTermination()
        cluster.promote()
        cluster.standby.make_standby_of(cluster.primary)
        start().awaitTermination()
        with Store.open(place) as store:
            assert [message.value for message in store.reader("two", start=EARLIEST)] == values
            assert store.maintenance.verify_store() == []
