"""Flips of single bits, and zeroed pages, in copies of a store: `python -m tests.processes.damage [FLIPS] [SEED]`.

Each flip has a copy and a forked process of its own, which asks everything (`damage_sample`). The answers are right,
an error of ours (corrupt), or wrong; or the process dies inside LMDB. After wrong answers and deaths a second process
verifies the copy. `judge` is asked for one flip, `main` prints the counts and every flip that verify did not find.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from storage import Store
from storage.errors import TxnctlError
from storage.process.clock import ManualClock
from tests.processes import damage_sample as sample
from tests.row_json import row_json

PAGE_BYTES = 4096


class Flip(NamedTuple):
    """A bit of the data file to be flipped; a page to be zeroed where the bit is None."""

    offset: int
    bit: int | None

    def apply(self, file: str) -> None:
        """Damage a file."""
        with open(file, "r+b") as opened:
            if self.bit is None:
                opened.seek(self.offset - self.offset % PAGE_BYTES)
                opened.write(bytes(PAGE_BYTES))
                return
            opened.seek(self.offset)
            byte = opened.read(1)[0]
            opened.seek(self.offset)
            opened.write(bytes([byte ^ 1 << self.bit]))


class Verdict(NamedTuple):
    """The class of a flip: right, corrupt, wrong, died or traceback; whether verify finds it, and what was wrong."""

    kind: str
    is_found: bool
    detail: str


class Sample:
    """A store to be damaged, with the right answers.

    Args:
        directory: for the store and its copies.
    """

    def __init__(self, directory: str, *, compacted: bool) -> None:
        self.path = os.path.join(directory, "compacted" if compacted else "grown")
        self._copy = self.path + "-copy"
        sample.build(self.path, compacted=compacted)
        self.bytes = os.path.getsize(self._data(self.path)) if compacted else self._used_bytes()
        self._fresh()
        # Asked in a child as after a flip: the user of a transaction is told to others than itself.
        _, self._truth = in_child(lambda: answers(self._copy))

    @staticmethod
    def _data(path: str) -> str:
        return os.path.join(path, "data.mdb")

    def _used_bytes(self) -> int:
        """The bytes up to the last page: nothing reads the zeros behind it."""
        with Store.open(self.path, read_only=True) as store:
            figures = store.connection.environment.info()
        return int((figures["last_pgno"] + 1) * figures["psize"])

    def _fresh(self) -> None:
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self.path, self._copy)

    def flip(self, chance: random.Random, *, zeroes: bool = False) -> Flip:
        """A bit at random, or a page."""
        return Flip(chance.randrange(self.bytes), None if zeroes else chance.randrange(8))

    def judge(self, flip: Flip) -> Verdict:
        """Damage a copy, ask everything, and verify the copy where an answer was wrong or none came."""
        self._fresh()
        flip.apply(self._data(self._copy))
        status, given = in_child(lambda: answers(self._copy))
        if given is None:
            kind, detail = "died", str(status)
        else:
            kind, detail = compare(self._truth, given)
        if kind in ("right", "corrupt"):
            return Verdict(kind, True, detail)
        self._fresh()
        flip.apply(self._data(self._copy))
        status, problems = in_child(lambda: verified(self._copy))
        return Verdict(
            kind, problems != [], f"{detail}; verify: {problems if problems is not None else status}"
        )


def answers(path: str) -> dict[str, Any]:
    """The answers to all questions: reads through a reading handle, then changes through a writing one."""
    given: dict[str, Any] = {}
    for is_writing in (False, True):
        try:
            store = Store.open(path, read_only=not is_writing, clock=ManualClock())
        except TxnctlError as error:
            given[f"opening {is_writing}"] = error
            continue
        with store:
            given |= sample.answer(sample.writes(store) if is_writing else sample.reads(store))
    return {
        name: ("error", value.code, value.message) if isinstance(value, TxnctlError) else value
        for name, value in given.items()
    }


def verified(path: str) -> list[str]:
    """The problems that `verify --full` finds."""
    try:
        with Store.open(path, read_only=True, clock=ManualClock()) as store:
            return [problem.message for problem in store.maintenance.verify_store(full=True)]
    except TxnctlError as error:
        return [error.message]


def overview(path: str) -> object:
    """The overview that `doctor` and `check` judge."""
    with Store.open(path, read_only=True) as store:
        return row_json(store.reports.store_overview())


def compare(truth: dict[str, Any], given: dict[str, Any]) -> tuple[str, str]:
    """The class of answers, and the first that is wrong.

    After the first `corrupt` a change is missing, so that later answers of changes are right as well where they differ.
    """
    is_corrupt = False
    for name, answer in given.items():
        if name.startswith("raised "):
            return "traceback", f"{name}: {answer}"
        if name.startswith("opening ") or (
            isinstance(answer, tuple) and answer[:2] == ("error", "corrupt-store")
        ):
            is_corrupt = True
        elif answer != truth[name] and not (is_corrupt and sample.is_change(name)):
            return "wrong", f"{name}: {str(answer)[:200]} for {str(truth[name])[:200]}"
    return ("corrupt" if is_corrupt else "right"), ""


def in_child(ask: Callable[[], Any]) -> tuple[int, Any]:
    """Call a function in a forked process; return the process's status, and the result or None where it died."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # LMDB complains there before it ends the process.
        try:
            result = ask()
        except BaseException as error:  # noqa: BLE001 - the question is whether any other exception comes out
            result = {f"raised {type(error).__name__}": str(error)}
        with suppress(BaseException), open(writing, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        data = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, pickle.loads(data) if data and status == 0 else None


def main(flips: int = 10_000, seed: int = 1) -> int:
    """Judge many flips, every twentieth a zeroed page, half in a compacted file; return the number not found."""
    chance, counts, lost = random.Random(seed), Counter[str](), 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as directory:
        samples = [Sample(directory, compacted=compacted) for compacted in (True, False)]
        for number in range(flips):
            chosen = samples[number % 2]
            flip = chosen.flip(chance, zeroes=number % 20 == 19)
            verdict = chosen.judge(flip)
            counts[verdict.kind if flip.bit is not None else f"{verdict.kind} (zeroed page)"] += 1
            if not verdict.is_found or verdict.kind == "traceback":
                lost += 1
                print(f"{os.path.basename(chosen.path)} {flip}: {verdict.kind}: {verdict.detail}", flush=True)
            if number % 250 == 249:
                print(f"{number + 1} flips: {dict(counts)}", flush=True)
    print(f"{flips} flips, seed {seed}: {dict(counts)}; {lost} wrong and not found")
    return lost


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
