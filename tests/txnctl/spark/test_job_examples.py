"""The examples of jobs in help, on the session of these tests; docs/PIPELINE.md runs each job as a process of its own."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storage import Store
from tests.txnctl.spark.job_examples import EXAMPLES
from tests.txnctl.test_topic_names import check
from txnctl.cli.declaration import Example
from txnctl.cli.main import main
from txnctl.spark.runtime import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.needs_program("java")
CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def work(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, beside a new store that commands find; jobs that start in this process get our session."""

    @contextmanager
    def shared(_name: str, **_options: Any) -> Iterator[SparkSession]:
        yield spark

    Store.create(tmp_path / "store")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(session, "spark_session", shared)
    return tmp_path / "work"


@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize(
    "example", [example for _, example in EXAMPLES], ids=[title for title, _ in EXAMPLES]
)
def test_it_ends_as_it_says(
    example: Example,
    output: str,
    work: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For people, and as JSON, in which it names topics as all commands do."""
    program = f'txnctl() {{ {shlex.quote(sys.executable)} -m txnctl "$@"; }}'
    prepared = subprocess.run(
        ["sh", "-ec", "\n".join([program, *example.setup])],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert prepared.returncode == 0, prepared.stderr
    monkeypatch.setenv("TXNCTL_OUTPUT", output)
    *before, last = [main(shlex.split(line)[1:]) for line in example.lines]
    out, err = capsysbinary.readouterr()
    assert err == b""
    assert (before, last) == ([0] * len(before), example.exit_code)
    if output == "json":
        first, _ = json.JSONDecoder().raw_decode(out.decode())
        check(first)
