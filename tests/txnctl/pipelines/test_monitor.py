"""The money of a topic as it is written: sums by period, and what is out of the ordinary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage import Store
from txnctl.pipelines import monitor
from txnctl.pipelines.monitor import Monitor, MonitorOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.needs_program("java")

JANUARY, FEBRUARY = 1_704_067_200_000, 1_706_745_600_000


def test_everything_is_counted_as_it_is_written(
    spark: SparkSession, store: Store, path: str, tmp_path: Path
) -> None:
    """Open transactions count, known aborted ones do not; totals go on over batches and restarts with a checkpoint."""
    store.create_topic("requests")
    producer = store.create_producer("requests")

    def send(key: str, amount: str, at: int, txn: object = None) -> str:
        value = f'{{"delta": "{amount}"}}'.encode()
        return str(producer.send(value, key=key, event_time=at, txn=txn))  # type: ignore[arg-type]

    def watch() -> monitor.View:
        what = MonitorOptions(outsized=1_000_00)
        taking = Monitor(what, str(tmp_path / "out"))
        options = {"path": path, "topic": "requests", "startingPosition": "earliest"}
        monitor.start_monitoring(spark, taking, options, str(tmp_path / "checkpoint")).wait()
        return taking.view

    send("1", "500.00", JANUARY)
    send("2", "-20.50", JANUARY)
    producer.send(b"no request", key="1", event_time=JANUARY)
    with store.transaction() as aborted:
        send("1", "7.00", JANUARY, aborted)
        aborted.abort("recalled")
    open_ = store.transaction()
    large = send("1", "-1500.00", FEBRUARY, open_)
    send("bank:AB", "1500.00", FEBRUARY, open_)
    open_.flush()
    view = watch()
    assert view.reserves == 500_00 - 20_50 - 1_500_00
    assert view.total is not None
    assert (view.total.messages, view.total.uncommitted, view.total.skipped) == (6, 2, 1)
    assert view.total.aborted == 1
    assert {name: (sums.inflow, sums.outflow) for name, sums in view.periods.items()} == {
        "2024-01-01T00:00:00Z": (500_00, 20_50),
        "2024-02-01T00:00:00Z": (0, 1_500_00),
    }
    assert view.overdrawn == {"1": -1_000_00, "2": -20_50}
    assert view.outsized[large].outflow == 1_500_00
    assert view.outsized[large].txn_id == str(open_.id)

    open_.commit()
    send("2", "20.50", FEBRUARY)
    view = watch()
    assert view.reserves == 500_00 - 1_500_00
    assert view.overdrawn == {}
    assert set(view.periods) == {"2024-02-01T00:00:00Z"}

    kept = spark.read.parquet(str(tmp_path / "out" / "sums"))
    last = kept.where("kind = 'total'").orderBy("batchId").collect()[-1]
    assert last["inflow"] - last["outflow"] == view.reserves
    assert spark.read.parquet(str(tmp_path / "out" / "unusual")).where("kind = 'outsized'").count() == 2


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "Europe/Berlin"])
def test_periods_begin_in_utc(spark: SparkSession, zone: str) -> None:
    """In sessions of every zone, also in the hour that the zone leaves out in spring."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    rows = spark.sql("SELECT timestamp_millis(1711852245678) AS at")
    found = {name: rows.select(monitor._period(name)).first()[0] for name in monitor.PERIODS}  # type: ignore[index]
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert found == {
        "minute": "2024-03-31T02:30:00Z",
        "hour": "2024-03-31T02:00:00Z",
        "day": "2024-03-31T00:00:00Z",
        "week": "2024-03-25T00:00:00Z",
        "month": "2024-03-01T00:00:00Z",
        "year": "2024-01-01T00:00:00Z",
    }
