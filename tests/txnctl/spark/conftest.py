"""One Spark session for the tests of this directory, and stores for it to read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage import Store
from txnctl.spark.runtime.worker_python import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session of two task slots, whose Python processes run the code of this tree."""
    from pyspark.sql import SparkSession

    place = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = worker_python(str(place))
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    session = (
        SparkSession.builder.master("local[2]")
        .appName("txnctl tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(place / "warehouse"))
        .config("spark.local.dir", str(place / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    """Where an empty store lies. It is verified at the end, whatever was done to it."""
    place = str(tmp_path / "store")
    Store.create(place)
    yield place
    with Store.open(place) as store:
        assert store.maintenance.verify_store(full=True) == []


@pytest.fixture
def store(path: str) -> Iterator[Store]:
    """That store, open."""
    with Store.open(path) as opened:
        yield opened
