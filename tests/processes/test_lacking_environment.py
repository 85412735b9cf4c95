"""A system that lacks something: one error names the thing, and no store is reported as damaged.

Each command is a real process: in a mount namespace where /proc shows no boot id, or as a user without an entry and a
home.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage import EARLIEST, Store
from tests.not_run import forbidden
from txnctl.cli.python_child import child_environment

HIDDEN = ("unshare", "--mount", "--map-root-user", "sh", "-c",
          'mount -t tmpfs none /proc/sys/kernel/random && exec "$@"', "sh")  # fmt: skip
UNKNOWN = ("unshare", "--user", "--map-user=54321")
HOMELESS = {"HOME": None, "XDG_DATA_HOME": None, "TXNCTL_STORE": None}


def run(
    words: str, cwd: Path, prefix: tuple[str, ...] = (), environment: dict[str, str | None] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of txnctl in a directory, behind a prefix, with variables changed (None: unset)."""
    variables = {**child_environment(), **(environment or {})}
    return subprocess.run(
        [*prefix, sys.executable, "-P", "-m", "txnctl", *words.split()],
        cwd=cwd, env={name: value for name, value in variables.items() if value is not None},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip


def check_space(prefix: tuple[str, ...], what: str) -> None:
    """Leave the test out where the machine makes no such namespace."""
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        forbidden(what)


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A store of the machine's clock with an open transaction, a consumer, a table."""
    path = tmp_path / "used"
    Store.create(path)
    with Store.open(path) as store:
        producer = store.create_producer("t", create_topic=True)
        producer.send(b"first")
        producer.send(b"x", txn=store.begin_transaction())
        store.subscribe("t", "s", initial_position=EARLIEST).receive(5)
        store.table("accounts", create=True).put(b"a", b"1")
        store.create_topic("left")
    return path


COMMANDS = (
    "store verify", "doctor", "produce t -m y", "consume t -s s", "transactions begin", "topics stats t",
    "store init {new}",
)  # fmt: skip


@pytest.mark.needs_program("unshare")
def test_without_a_boot_id_no_command_sees_damage_or_a_bug(used: Path, tmp_path: Path) -> None:
    """Every command that needs the id names the file and ends with 6, and changes nothing."""
    check_space(HIDDEN, "mounting over /proc")
    before = (used / "data.mdb").read_bytes()
    for words in COMMANDS:
        done = run(words.format(new=tmp_path / "new"), tmp_path, HIDDEN, {"TXNCTL_STORE": str(used)})
        said = done.stdout + done.stderr
        assert (done.returncode, "boot_id cannot be read" in said) == (6, True), f"{words}: {said}"
        assert "a bug" not in said
        assert "backup" not in said
    assert (used / "data.mdb").read_bytes() == before
    assert not (tmp_path / "new").exists()
    with Store.open(used) as store:
        assert store.maintenance.verify_store(full=True) == []


@pytest.mark.needs_program("unshare")
@pytest.mark.parametrize("home", [None, "x/y"])
def test_without_a_home_there_is_no_default_store(tmp_path: Path, home: str | None) -> None:
    """One error says which variables will do; no directory `~` appears; a store that is named works."""
    check_space(UNKNOWN, "mapping a user that has no entry")
    homeless = {**HOMELESS, "HOME": home}
    for words in ("topics list", "store init"):
        done = run(f"{words} -o json", tmp_path, UNKNOWN, homeless)
        error = json.loads(done.stderr)
        assert (done.returncode, error["code"]) == (6, "platform-unsupported"), words
        assert "TXNCTL_STORE" in error["hint"]
    assert list(tmp_path.iterdir()) == []
    shown = json.loads(run("config show -o json", tmp_path, UNKNOWN, homeless).stdout)
    assert (shown[0]["name"], shown[0]["value"]) == ("store", None)
    place = str(tmp_path / "named")
    for words in ("store init", "produce t -m x --create", "store verify"):
        done = run(words, tmp_path, UNKNOWN, {**homeless, "TXNCTL_STORE": place})
        assert done.returncode == 0, f"{words}: {done.stderr}"
    assert [each.name for each in tmp_path.iterdir()] == ["named"]


@pytest.mark.needs_program("unshare", "java")
def test_spark_says_that_the_user_has_no_entry(used: Path, tmp_path: Path) -> None:
    """Java's login ends Spark; the error says so before a JVM starts, and names the line to add."""
    check_space(UNKNOWN, "mapping a user that has no entry")
    done = run("pipeline sql SELECT", tmp_path, UNKNOWN, {**HOMELESS, "TXNCTL_STORE": str(used)})
    assert (done.returncode, "passwd entry" in done.stderr) == (6, True), done.stderr
    assert "/etc/passwd" in done.stderr


@pytest.mark.parametrize(
    "variables",
    [
        {"LANG": "C", "LC_ALL": "nonexistent"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "utf-16"},
        {"TZ": "Nowhere/None", "TERM": "", "COLUMNS": "x", "LINES": "-1", "PATH": ""},
    ],
    ids=lambda variables: " ".join(f"{name}={value}" for name, value in variables.items()),
)
def test_odd_locales_and_terminals_change_no_outcome(
    used: Path, tmp_path: Path, variables: dict[str, str | None]
) -> None:
    """Text that the encoding lacks is written all the same, and a check by a child finds a sound store."""
    environment: dict[str, str | None] = {"TXNCTL_STORE": str(used), **variables}
    for words in ("produce t -m é☃ -k ü", "consume t", "transactions list", "store verify"):
        done = run(words, tmp_path, (), environment)
        assert done.returncode == 0, f"{words}: {done.stderr}"


def test_without_a_temporary_directory_a_job_names_the_variable(tmp_path: Path) -> None:
    """`demo` has files in one; the system's own directories are hidden by the limit on the size of files."""
    limit = ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh")
    done = run("demo", tmp_path, limit, {"TMPDIR": os.devnull})
    assert (done.returncode, "TMPDIR" in done.stderr) == (6, True), done.stderr
