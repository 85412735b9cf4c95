"""Damaged files: whatever is read is right or an error; never wrong, never a hang (semantics section 8)."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from storage import Store
from storage.errors import NotAStore, StoreInvalid
from tests.processes import damage, damage_sample
from tests.processes.child import ROOT, Children

FLIPS = max(60, int(os.environ.get("CRASH_ROUNDS", "0")))
SEED = int(os.environ.get("CRASH_SEED", "1"))


@pytest.fixture
def sample(tmp_path: Path) -> str:
    """A store with something of everything, to be damaged."""
    place = str(tmp_path / "sample")
    damage_sample.build(place)
    return place


@pytest.mark.crash_sweep
def test_a_flipped_bit_is_found_or_does_no_harm(children: Children) -> None:
    """Hundreds of flips and zeroed pages: each answer is right, `corrupt`, or verify names the damage."""
    child = children.module("damage", FLIPS, SEED)
    lines = list(iter(lambda: child.line(600), None))
    assert child.wait() == 0, lines
    assert lines[-1].endswith("0 wrong and not found")


def sizes_to_try(size: int) -> list[int]:
    return [0, 1, 100, 4095, 4096, 8191, 8192, 12_288, size // 2, size - 4096 * 3, size - 4096, size - 1]


@pytest.mark.parametrize("which", range(12))
@pytest.mark.parametrize("read_only", [False, True])
def test_a_truncated_file_is_refused(sample: str, children: Children, which: int, read_only: bool):
    """CorruptStore at opening, from a child: LMDB would kill it; the file is left as it is."""
    data = Path(sample, "data.mdb")
    whole = data.read_bytes()
    size = sizes_to_try(len(whole))[which]
    os.truncate(data, size)
    child = children.run(
        """
        for _ in range(2):
            try:
                Store.open(sys.argv[2], read_only=sys.argv[3] == "True")
            except errors.StoreInvalid as error:
                say(error.code, error.exit_code, error.message)
        """,
        sample,
        read_only,
    )
    for _ in range(2):
        assert child.expect("corrupt-store").startswith("6 ")
    child.succeed()
    assert data.read_bytes() == whole[:size]
    data.write_bytes(whole)
    with Store.open(sample) as store:
        assert store.maintenance.verify_store(full=True) == []


@pytest.mark.parametrize("name", ["data.mdb", "lock.mdb", "store.lock"])
def test_files_with_foreign_content_are_refused_or_do_no_harm(sample: str, name: str):
    """Noise as the data file is no store; noise in the lock files is only ever a lock file."""
    file = Path(sample, name)
    noise = bytes(range(256)) * 64
    file.write_bytes(noise)
    if name == "data.mdb":
        with pytest.raises(NotAStore):
            Store.open(sample)
        assert file.read_bytes() == noise
        return
    try:
        store = Store.open(sample)
    except StoreInvalid:
        assert name == "lock.mdb", "LMDB may refuse its own lock file"
        return
    with store:
        assert store.maintenance.verify_store(full=True) == []
        store.create_producer("letters").send(b"x")


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("pages_less", range(1, 9))
def test_a_page_beyond_the_last_one_is_damage(sample: str, read_only: bool, pages_less: int):
    """LMDB's first pages name a last page that is too low: whoever meets a page behind it is told, in our words."""
    data = Path(sample, "data.mdb")
    whole = bytearray(data.read_bytes())
    for at in (136, 4096 + 136):
        last = int.from_bytes(whole[at : at + 8], sys.byteorder)
        whole[at : at + 8] = (last - pages_less).to_bytes(8, sys.byteorder)
    data.write_bytes(whole)
    with suppress(StoreInvalid), Store.open(sample, read_only=read_only) as store:
        for topic in store.topics():
            store.reports.topic_stats(topic)
            list(store.reader(topic))
            if not read_only:
                store.create_producer(topic).send(b"x")


def page_that_kills(path: str) -> int:
    """The number of a page of the sample that, zeroed, ends a process that makes an overview."""
    data = Path(path, "data.mdb")
    whole = data.read_bytes()
    for page in range(2, len(whole) // 4096):
        damage.Flip(4096 * page, None).apply(str(data))
        status, _ = damage.in_child(lambda: damage.overview(path))
        data.write_bytes(whole)
        if status < 0:
            return page
    raise LookupError("no page kills")


def txnctl(*words: str) -> tuple[int, str]:
    """Run a command; return the exit code, and what it says."""
    command = [sys.executable, "-m", "txnctl", *words]
    ended = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_the_commands_for_damage_survive_it(sample: str, tmp_path: Path) -> None:
    """A page that kills LMDB is named by verify; doctor, check, backup and restore end with 6 or the code of a plugin."""
    page = page_that_kills(sample)
    damage.Flip(4096 * page, None).apply(os.path.join(sample, "data.mdb"))
    code, text = txnctl("store", "verify", "--store", sample)
    assert code == 6 and f"page {page}" in text, text
    code, text = txnctl("doctor", "--store", sample)
    assert code == 6 and "txnctl store verify" in text, text
    code, text = txnctl("check", "--store", sample)
    assert code == 2 and "CRITICAL" in text, text
    copies = (
        ("store", "backup", str(tmp_path / "backup"), "--store", sample),
        ("store", "restore", sample, "--to", str(tmp_path / "restored")),
    )
    for words in copies:
        code, text = txnctl(*words)
        assert code == 6 and f"page {page}" in text, text
    assert not Path(tmp_path, "backup").exists() and not Path(tmp_path, "restored").exists()
