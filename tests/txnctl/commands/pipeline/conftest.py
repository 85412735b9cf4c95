"""Fixtures of the tests in this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storage import Store
from txnctl.spark.runtime import java, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with a topic and a table, which commands find by themselves."""
    place = str(tmp_path / "store")
    Store.create(place)
    with Store.open(place) as store:
        store.create_topic("requests")
        store.create_table("accounts")
    monkeypatch.setenv("TXNCTL_STORE", place)
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    monkeypatch.chdir(tmp_path)
    return place


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has none."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.setattr(java, "_PATTERNS", ())


@pytest.fixture
def run_on_spark(run: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a command line in this process, its job in the session that all tests share: no further JVM starts."""

    @contextmanager
    def shared(*_: object, **_options: object) -> Iterator[SparkSession]:
        yield spark

    def run_line(*words: str) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(session, "spark_session", shared)
            return run(*words)

    return run_line
