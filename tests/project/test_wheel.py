"""What `pip install` brings: the wheel built from this tree, installed beside nothing else of it."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the tree so that the tree stays as it is."""
    source = tmp_path_factory.mktemp("wheel") / "source"
    outside = shutil.ignore_patterns(
        ".*", "build", "dist", "*.egg-info", "__pycache__", "tests", "benchmarks", "scale"
    )
    shutil.copytree(ROOT, source, ignore=outside)
    built = source.parent / "built"
    command = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", built, source]
    subprocess.run(command, check=True)
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def prefix(wheel: Path) -> Path:
    """A place into which the wheel alone is installed."""
    place = wheel.parent.parent / "prefix"
    command = [*PIP, "install", "--no-deps", "--no-index", "--ignore-installed", "--prefix", place, wheel]
    subprocess.run([*command, "--no-warn-script-location"], check=True)
    return place


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def data(wheel: Path) -> set[str]:
    """The files that land outside the packages, by their place under the prefix."""
    return {name.split(".data/data/", 1)[1] for name in names(wheel) if ".data/data/" in name}


def test_the_wheel_holds_every_module_and_nothing_else(wheel: Path):
    """Each module of the packages with its py.typed, and no test, benchmark or document as a package."""
    modules = {
        str(path.relative_to(ROOT))
        for package in ("storage", "txnctl", "pyspark_txnctl")
        for path in (ROOT / package).rglob("*.py")
    }
    packaged = {name for name in names(wheel) if ".dist-info/" not in name and ".data/" not in name}
    assert packaged == modules | {"storage/py.typed", "txnctl/py.typed"}


def test_the_wheel_holds_every_man_page(wheel: Path):
    """Each page of man/ goes to its section of share/man."""
    pages = {f"share/man/man{page.suffix[1:]}/{page.name}" for page in (ROOT / "man").rglob("*.[157]")}
    assert "share/man/man1/txnctl.1" in pages
    assert pages == {name for name in data(wheel) if name.startswith("share/man/")}


def test_the_wheel_holds_the_completions_where_each_shell_looks(wheel: Path):
    """bash, zsh and fish load them from these places by these names."""
    assert {name for name in data(wheel) if not name.startswith("share/man/")} == {
        "share/bash-completion/completions/txnctl.bash",
        "share/zsh/site-functions/_txnctl",
        "share/fish/vendor_completions.d/txnctl.fish",
    }


def test_the_wheel_holds_the_licence_and_says_it(wheel: Path):
    """LICENSE and NOTICE travel with the code, and the metadata names the licence."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
    assert "License-Expression: Apache-2.0\n" in text
    licences = {name.rsplit("/", 1)[1] for name in names(wheel) if ".dist-info/licenses/" in name}
    assert licences == {"LICENSE", "NOTICE"}


def test_the_installed_command_runs_from_the_wheel_alone(prefix: Path, tmp_path: Path):
    """`txnctl` of the prefix works in another directory and takes its code from the prefix."""
    packages = sysconfig.get_path("purelib", vars={"base": str(prefix), "platbase": str(prefix)})
    environment = os.environ | {"PYTHONPATH": packages, "TXNCTL_STORE": str(tmp_path / "bank.store")}

    def run(*command: str | Path) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    for module in ("storage", "txnctl"):
        assert run(sys.executable, "-c", f"import {module}; print({module}.__file__)").startswith(packages)
    run(prefix / "bin" / "txnctl", "store", "init")
    run(prefix / "bin" / "txnctl", "produce", "requests", "--create", "-m", "100")
    assert run(prefix / "bin" / "txnctl", "consume", "requests", "-o", "value") == "100\n"
