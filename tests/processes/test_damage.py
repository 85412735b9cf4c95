"""Damaged files: whatever is read is right or an error; never wrong, never a hang (semantics section 8)."""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from storage import Store
from storage.errors import NotAStore, StoreInvalid
from tests.processes import damage
from tests.processes.child import Children

FLIPS = max(400, int(os.environ.get("CRASH_ROUNDS", "0")))
SEED = int(os.environ.get("CRASH_SEED", "1"))
READERS = 2


@pytest.fixture
def sample(tmp_path: Path) -> str:
    """A store with something of everything, to be damaged."""
    place = str(tmp_path / "sample")
    damage.build(place)
    return place


def judge_flips(children: Children, path: str, first: int) -> tuple[list[str], int]:
    """The verdicts on every READERS-th flip from `first` on, and how many killed the reading process."""
    verdicts, deaths = [], 0
    while first < FLIPS:
        child = children.module("damage", path, first, READERS, FLIPS, SEED)
        while (line := child.line(20)) not in ("end", None):
            number, offset, bit = map(int, str(line).split())
            verdict = child.line(20)
            if verdict is None:
                damage.flip(os.path.join(path, "data.mdb"), offset, bit)
                assert child.wait() < 0, child.complaint()
                deaths += 1
                first = number + READERS
                break
            verdicts.append(f"{verdict.removeprefix('verdict ')} (flip {number}: bit {bit} of {offset})")
        else:
            assert line == "end", child.complaint()
            break
    return verdicts, deaths


@pytest.mark.crash_sweep
@pytest.mark.parametrize("first", range(READERS))
def test_a_flipped_bit_is_found_or_does_no_harm(sample: str, children: Children, first: int):
    """Hundreds of flips: what is read is right or an error of ours; a report is wrong only if verify says so."""
    verdicts, deaths = judge_flips(children, sample, first)
    kinds = Counter(verdict.split()[0] for verdict in verdicts)
    assert [verdict for verdict in verdicts if verdict.startswith(("WRONG", "TRACEBACK"))] == [], kinds
    assert sum(kinds.values()) + deaths == len(range(first, FLIPS, READERS))
    assert kinds["error"] > FLIPS // 20, "much of what was flipped was needed by somebody"
    assert kinds["report"] <= FLIPS // 50, kinds
    assert deaths <= max(2, FLIPS // 100), "only inside LMDB's own pages, which nothing can catch"


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
