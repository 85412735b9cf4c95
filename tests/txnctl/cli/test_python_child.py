"""Child processes of Python load no module of the current directory: `txnctl/cli/python_child.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage import Store
from tests.txnctl.demo_steps import SMALL
from txnctl.cli.python_child import child_environment, module_command
from txnctl.commands.store.verify_child import Verification
from txnctl.demo import casualty, child


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory has packages with the names of ours; each leaves its name in the returned file."""
    place, loaded = tmp_path / "planted", tmp_path / "loaded"
    for name in ("storage", "txnctl", "pyspark_txnctl", "lmdb", "click"):
        (place / name).mkdir(parents=True)
        (place / name / "__init__.py").write_text(f"open({str(loaded)!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(place)
    return loaded


def test_a_module_runs_without_the_current_directory(planted: Path) -> None:
    """Nor does a Python below it that is started without -P."""
    below = f"import subprocess; subprocess.run([{sys.executable!r}, '-m', 'txnctl', 'version'], check=True)"
    subprocess.run(module_command("txnctl", "version"), env=child_environment(), check=True)
    subprocess.run([sys.executable, "-P", "-c", below], env=child_environment(), check=True)
    assert not planted.exists()


def test_the_processes_of_the_demo_do_not_load_it(planted: Path) -> None:
    """A command, and the process that is killed: it fails here only for want of a store."""
    with child.start("txnctl", "version", stdin=subprocess.DEVNULL) as process:
        assert process.wait(60) == 0
    with child.start(casualty.__name__, "/nowhere", stdin=subprocess.DEVNULL) as process:
        assert process.wait(60) == 1
        assert process.stderr is not None
        assert b"StoreNotFound" in process.stderr.read()
    assert not planted.exists()


def test_the_child_of_verify_does_not_load_it(planted: Path, tmp_path: Path) -> None:
    """The store is checked by the engine of its parent."""
    Store.create(tmp_path / "store")
    with Verification(str(tmp_path / "store"), full=True) as verification:
        assert list(verification.steps()) != []
    assert verification.problems == []
    assert not planted.exists()


def test_the_demo_does_not_load_it(planted: Path) -> None:
    """The whole story, begun as by the installed command: -P without PYTHONSAFEPATH."""
    _succeed("demo", *SMALL)
    assert not planted.exists()


@pytest.mark.needs_program("java")
def test_the_processes_of_spark_do_not_load_it(planted: Path, tmp_path: Path) -> None:
    """Workers and data sources run in the current directory too."""
    path = tmp_path / "store"
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("orders")
        store.create_producer("orders").send(b"a")
    program = tmp_path / "count.py"
    program.write_text('assert spark.read.format("txnctl").option("topic", "orders").load().count() == 1\n')
    _succeed("pipeline", "run", str(program), "--store", str(path))
    assert not planted.exists()


def _succeed(*words: str) -> None:
    environment = {**os.environ, "PYTHONPATH": child_environment()["PYTHONPATH"]}
    environment.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(module_command("txnctl", *words), env=environment, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
