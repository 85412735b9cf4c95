"""The Python beside the JVM loads the PySpark that is installed, and all else from where Spark says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from txnctl.spark.runtime import worker_python
from txnctl.spark.runtime.worker_python import worker_python as made

HOME = Path(pyspark.__file__).parent
ARCHIVES = [
    *(str(each) for each in sorted(HOME.glob("python/lib/*.zip"), key=lambda each: "py4j" in each.name)),
    *map(str, HOME.glob("jars/spark-core_*.jar")),
]
LOOK = "import json, os, pyspark, sys; print(json.dumps([pyspark.__file__, os.environ['PYTHONPATH'], sys.argv[1:]]))"


def seen(program: str, path: list[str]) -> list[object]:
    """Where a Python with this path has PySpark from, its path then, and its arguments."""
    done = subprocess.run(
        [program, "-c", LOOK, "a b", "$c"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("times", [1, 2])
def test_the_installed_package_is_loaded_and_not_spark_s_archive(tmp_path: Path, times: int) -> None:
    """Spark puts its archives first, now once and now twice; what follows them stays."""
    assert len(ARCHIVES) == 3
    rest = ["/a b/mine", "/theirs"]
    path = [*ARCHIVES * times, *rest]
    assert seen(made(str(tmp_path)), path) == [pyspark.__file__, os.pathsep.join(rest), ["a b", "$c"]]
    assert str(seen(sys.executable, path)[0]).startswith(ARCHIVES[0])


def test_a_path_without_the_archives_is_left_alone(tmp_path: Path) -> None:
    """Whatever is on it."""
    assert seen(made(str(tmp_path)), ["/one", "/two.zip"])[1] == "/one:/two.zip"


def test_a_pyspark_that_is_not_a_package_of_this_python_is_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that PYTHONPATH names, for example."""
    monkeypatch.setattr(pyspark, "__file__", str(tmp_path / "python" / "pyspark" / "__init__.py"))
    assert made(str(tmp_path)) == sys.executable


def test_where_nothing_may_be_run_it_is_this_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system that is mounted noexec."""
    monkeypatch.setattr(worker_python.os, "access", lambda *_: False)
    assert made(str(tmp_path)) == sys.executable
