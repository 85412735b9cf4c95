"""requirements.lock: every pinned version with the hashes of its files, and pip installs by it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.project.lock import LOCK, PLATFORMS, PYTHONS, locked, sections

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
PIN = re.compile(r"^([a-z0-9.-]+==\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


def hashes() -> dict[str, set[str]]:
    """The hashes of the lock, by `name==version`."""
    return {pin: set(re.findall("[0-9a-f]{64}", rest)) for pin, rest in PIN.findall(LOCK.read_text())}


def test_every_pinned_version_is_locked() -> None:
    """In the order of constraints.txt, with a hash each, and nothing else: no address, no option."""
    by_name = {pin.partition("==")[0]: values for pin, values in hashes().items()}
    assert LOCK.read_text() == locked(by_name)
    assert list(hashes()) == [pin for _, pins in sections() for pin in pins]


def test_what_is_built_for_each_python_has_a_file_for_each() -> None:
    """As msgpack has: three Pythons on four platforms, and the source."""
    (msgpack,) = [values for pin, values in hashes().items() if pin.startswith("msgpack==")]
    assert len(msgpack) == len(PYTHONS) * len(PLATFORMS) + 1


def test_pip_takes_the_lock_for_whole() -> None:
    """With the hashes required, and all of it installed here, pip finds no dependency without a version or a hash."""
    installed = LOCK.read_text().partition("# make hooks")[0]
    command = [*PIP, "install", "--dry-run", "--require-hashes", "-r", "/dev/stdin"]
    subprocess.run(command, check=True, input=installed, text=True)


def test_pip_downloads_by_the_lock(tmp_path: Path) -> None:
    """What txnctl needs, and a file with a different hash is refused."""
    needed = LOCK.read_text().partition("# extra: spark")[0]
    lock, download = tmp_path / "lock", [*PIP, "download", "--require-hashes", "-d", tmp_path / "files"]
    lock.write_text(needed)
    subprocess.run([*download, "-r", lock], check=True)
    assert len(list((tmp_path / "files").iterdir())) == len(sections()[0][1])
    lock.write_text(re.sub("[0-9a-f]{64}", "0" * 64, needed))
    refused = subprocess.run([*download, "-r", lock], check=False, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "DO NOT MATCH THE HASHES" in refused.stderr
