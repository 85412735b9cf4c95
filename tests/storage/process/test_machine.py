"""What the machine tells: `storage/process/machine.py`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import EARLIEST, Store
from storage.errors import PlatformUnsupported
from storage.process import identity, machine
from storage.process.lock_file import processes_with


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory in place of /proc."""
    place = tmp_path / "proc"
    place.mkdir()
    monkeypatch.setattr(machine, "PROC", str(place))
    machine.boot_id.cache_clear()
    yield place
    machine.boot_id.cache_clear()


def write_boot_id(proc: Path, text: str) -> None:
    """Write the file of the boot id."""
    place = proc / "sys" / "kernel" / "random"
    place.mkdir(parents=True)
    (place / "boot_id").write_text(text)


@pytest.mark.parametrize("text", [None, "", "\n", "no id", "abcd", "é"])
def test_a_missing_boot_id_is_an_error_that_names_the_file(proc: Path, text: str | None) -> None:
    """Missing, empty as in a sandbox, or no id at all."""
    if text is not None:
        write_boot_id(proc, text)
    with pytest.raises(PlatformUnsupported) as raised:
        machine.boot_id()
    assert f"{proc}/sys/kernel/random/boot_id cannot be read" in raised.value.message
    assert (raised.value.exit_code, raised.value.code) == (6, "platform-unsupported")
    assert "mount /proc" in (raised.value.hint or "")


def test_an_error_is_no_answer_for_later(proc: Path) -> None:
    """As soon as the file is there, the id is read."""
    with pytest.raises(PlatformUnsupported):
        machine.boot_id()
    write_boot_id(proc, "01234567-89ab-cdef-0123-456789abcdef\n")
    assert machine.boot_id().hex() == "0123456789abcdef0123456789abcdef"


def test_what_only_informs_is_left_out(proc: Path, tmp_path: Path) -> None:
    """Without /proc a process has no start time and no program, and no process is seen."""
    assert not any(proc.iterdir())
    assert (identity.started(os.getpid()), identity.program_of(os.getpid()), machine.pids()) == (0, "", [])
    assert processes_with(str(tmp_path)) == []
    assert not identity.is_stopped(os.getpid(), 0)


def test_verify_without_a_boot_id_finds_no_damage(tmp_path: Path, proc: Path) -> None:
    """The error names the file; a sound store is never reported as damaged for what the system lacks."""
    write_boot_id(proc, "01234567-89ab-cdef-0123-456789abcdef\n")
    path = str(tmp_path / "store")
    Store.create(path)
    with Store.open(path) as store:
        store.table("accounts", create=True).put(b"a", b"1")
        store.create_topic("t")
        store.create_producer("t").send(b"x", txn=store.begin_transaction())
        store.subscribe("t", "s", initial_position=EARLIEST)
        (proc / "sys" / "kernel" / "random" / "boot_id").unlink()
        machine.boot_id.cache_clear()
        with pytest.raises(PlatformUnsupported, match="boot_id"):
            store.maintenance.verify_store(full=True)


def test_home_is_that_of_the_variable_or_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative or empty HOME would be a directory in each working directory."""
    monkeypatch.delenv("HOME")
    users = machine.home()
    for text in ("", "x/y", "~"):
        monkeypatch.setenv("HOME", text)
        assert machine.home() == users
    monkeypatch.setenv("HOME", "/h")
    assert machine.home() == "/h"


def test_a_user_without_an_entry_has_no_name() -> None:
    """As a container's."""
    assert machine.user_name(3_999_999_998) is None
    assert machine.user_name(0) == "root"


def test_no_temporary_directory_is_an_error_that_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where every disk is read-only."""
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nonexistent"])
    with pytest.raises(PlatformUnsupported, match="temporary") as raised:
        machine.temporary_directory()
    assert "TMPDIR" in (raised.value.hint or "")


def test_no_other_module_asks_the_machine() -> None:
    """Each read of /proc, the table of users, the home and the place of temporary files passes here."""
    root = Path(machine.__file__).parents[2]
    asking = re.compile(
        r"(open|dir|exists|Path)\(f?[\"']/proc\b|expanduser|getpwuid|gettempdir|Path\.home|getlogin|getpass"
    )
    sources = [
        *root.glob("storage/**/*.py"),
        *root.glob("txnctl/**/*.py"),
        *root.glob("pyspark_txnctl/**/*.py"),
    ]
    asked = {str(source.relative_to(root)) for source in sources if asking.search(source.read_text())}
    assert asked == {"storage/process/machine.py"}
