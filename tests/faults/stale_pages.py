"""Older versions of pages put back, one at a time, each in a copy: `python -m tests.faults.stale_pages [PAGES] [SEED]`.

A disk that confirms a write and keeps the older content of the page leaves such a store. Each is asked everything, as
`tests.processes.damage` does after a flipped bit. A page whose older content fits in every respect cannot be told from a
newer one (docs/decisions/0038): such wrong answers are counted. No answer may be a traceback, and a death is found.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from typing import NamedTuple

from storage import Store
from storage.process.clock import ManualClock
from tests.processes import damage, damage_sample

_PAGE = damage.PAGE_BYTES


class StalePage(NamedTuple):
    """A page of the data file, and an earlier content of it."""

    number: int
    content: bytes

    def apply(self, file: str) -> None:
        """Put the earlier content back."""
        with open(file, "r+b") as opened:
            opened.seek(self.number * _PAGE)
            opened.write(self.content)


class StaleSample(damage.Sample):
    """A store that has been changed after its pages were copied, with the right answers."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, "changed")
        self._copy = self.path + "-copy"
        damage_sample.build(self.path, compacted=False)
        images = [self._image()]
        for step in range(3):
            self._change(step)
            images.append(self._image())
        self.stale = [
            StalePage(number, old[number * _PAGE : (number + 1) * _PAGE])
            for old in images[:-1]
            for number in range(min(len(old), len(images[-1])) // _PAGE)
            if old[number * _PAGE : (number + 1) * _PAGE] != images[-1][number * _PAGE : (number + 1) * _PAGE]
        ]
        self._fresh()
        self._truth = damage.answers(self._copy)

    def _image(self) -> bytes:
        with open(self._data(self.path), "rb") as file:
            return file.read(self._used_bytes())

    def _change(self, step: int) -> None:
        with Store.open(self.path, clock=ManualClock()) as store:
            letters, numbers = store.create_producer("letters"), store.create_producer("numbers")
            for number in range(4):
                letters.send(b"later %d.%d" % (step, number), key="k1")
                store.table("stock").put(b"item %04d" % (40 * step + number), b"later")
                with store.transaction() as txn:
                    numbers.send(b"later, in a transaction", txn=txn)
            with store.subscribe("letters", "s") as consumer:
                consumer.acknowledge(list(consumer.receive_batch(4, timeout=0))[::2])


def judge_all(directory: str, pages: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Judge stale pages; counts of kinds, and what must not be: a traceback, or a death that verify does not find."""
    sample, counts, failures = StaleSample(directory), Counter[str](), []
    chosen = random.Random(seed).sample(sample.stale, min(pages, len(sample.stale)))
    for stale in chosen:
        verdict = sample.judge(stale)  # type: ignore[arg-type]
        found = "" if verdict.is_found or verdict.kind in ("right", "corrupt") else ", not found by verify"
        counts[verdict.kind + found] += 1
        if verdict.kind == "traceback" or (verdict.kind == "died" and not verdict.is_found):
            failures.append(f"page {stale.number}: {verdict.kind}: {verdict.detail}")
    return counts, failures


def truncations(directory: str) -> tuple[int, list[str]]:
    """Cut the file of a sample at every page and in the middle of each; the cuts, and those not refused as damage."""
    path, failures, cuts = os.path.join(directory, "truncated"), [], 0
    damage_sample.build(path, compacted=True)
    data = os.path.join(path, "data.mdb")
    with open(data, "rb") as file:
        whole = file.read()
    for size in range(0, len(whole), _PAGE // 2):
        for read_only in (True, False):
            with open(data, "wb") as file:
                file.write(whole[:size])
            cuts += 1
            status, refusal = damage.in_child(lambda read_only=read_only: _opened(path, read_only))
            if refusal not in ("corrupt-store", "not-a-store"):
                failures.append(f"cut to {size} bytes, read_only={read_only}: {refusal}, status {status}")
    shutil.rmtree(path)
    return cuts, failures


def _opened(path: str, read_only: bool) -> str:
    from storage.errors import TxnctlError

    try:
        Store.open(path, read_only=read_only).close()
    except TxnctlError as error:
        return error.code
    return "opened"


def main(pages: int = 2_000, seed: int = 1) -> int:
    """Judge stale pages and truncations; print the counts, and return the number of failures."""
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        counts, failures = judge_all(directory, pages, seed)
        cuts, not_refused = truncations(directory)
    for line in (*failures, *not_refused):
        print(line)
    print(f"{sum(counts.values())} stale pages, seed {seed}: {dict(counts)}; {len(failures)} failures")
    print(f"{cuts} truncations, {len(not_refused)} not refused as damage")
    return len(failures) + len(not_refused)


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
