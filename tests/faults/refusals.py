"""EIO, ENOSPC and EMFILE at every system call of every operation.

    python -m tests.faults.refusals [SHARE [SEED [OPERATION [PART/PARTS]]]]

SHARE of the calls is tried, chosen by chance; 1 is all of them, once refused alone and once with all calls of the kind
after it. 1/4, 2/4, 3/4 and 4/4 are four parts of the same run, for four processes; OPERATION may be "". The operation
succeeds, or ends with one error of txnctl and its exit code: no traceback, no signal, no "bug"; the error has the cause
and its kind, and nothing was stored. The store is sound, what is left is the state before or after, a retry leads on
from there, and no file is left then that does not belong there.
"""

from __future__ import annotations

import errno
import os
import random
import sys
import tempfile
from collections import Counter
from typing import Final

from tests.faults.operations import OPERATIONS, Operation
from tests.faults.traps import Calls, Mode
from tests.faults.trials import Fault, Run, Trials, attempt

KINDS: Final = (
    (errno.EIO, Calls.FILES),
    (errno.ENOSPC, Calls.CHANGES),
    (errno.EMFILE, Calls.OPENS),
)
_CODES: Final = {
    errno.EIO: ("store-invalid", "outcome-unknown"),
    errno.ENOSPC: ("store-full", "outcome-unknown"),
    errno.EMFILE: ("too-many-files", "outcome-unknown"),
}
"""Codes of the errors that a refused call may end with."""
_UNLOCKED: Final = "MDB_INVALID"
"""LMDB's answer where it cannot lock a lock file that it has just made."""
_DAMAGE: Final = (_UNLOCKED, "the file cannot be read")
"""Words of errors that are rightly taken for damage: the second is what `verify` finds."""
_OWN_WORDS: Final = ("too many files are open", _UNLOCKED)
_SILENT: Final = 0
_PIPE_CLOSED: Final = 141


def problem_of(run: Run, error: int) -> str | None:
    """What is wrong with the end of an operation that met a refused call; None for nothing.

    Args:
        error: the errno of the refused call.
    """
    if run.death is not None:
        return run.death
    if "Traceback" in run.errors or run.code == "unexpected" or "This is a bug" in run.errors:
        return f"no clear error: {run.errors}"
    if run.exit_code not in (_SILENT, _PIPE_CLOSED) and not run.errors:
        return f"exit code {run.exit_code} without a word"
    causes = (os.strerror(error), *_OWN_WORDS)
    if run.code is not None and not any(cause in run.errors for cause in causes):
        return f"no cause: {run.errors}"
    if run.code not in (None, *_CODES[error]) and not any(words in run.errors for words in _DAMAGE):
        return f"the wrong kind of error: {run.errors}"
    return None


class Chosen:
    """The cases of a run: a share of all, chosen by chance, and of those the ones of one part.

    Args:
        part: its number, from 1 on, and the number of parts.
    """

    def __init__(self, share: float, seed: int, part: tuple[int, int] = (1, 1)) -> None:
        self._share = share
        self._chance = random.Random(seed)
        self._part, self._parts = part
        self._case = 0

    def next(self) -> bool:
        """Whether the next case is tried."""
        self._case += 1
        return self._chance.random() < self._share and self._case % self._parts == self._part % self._parts


class Totals:
    """The numbers of calls that operations make, counted in one run for each kind of calls, whatever the mode."""

    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self._known: dict[tuple[str, Calls], int] = {}

    def of(self, operation: Operation, calls: Calls) -> int:
        if (known := self._known.get((operation.name, calls))) is not None:
            return known
        run = self._trials.run(operation, self._trials.fresh("counted"), Fault(Mode.COUNT, calls, 0))
        self._known[operation.name, calls] = run.calls
        return run.calls


def sweep(
    trials: Trials, totals: Totals, operation: Operation, mode: Mode, chosen: Chosen
) -> tuple[Counter[str], list[str]]:
    """Refuse the calls of an operation; counts by error and code, and what is wrong."""
    counts, failures = Counter[str](), []
    for error, calls in KINDS:
        total = totals.of(operation, calls)
        for at in filter(lambda _: chosen.next(), range(1, total + 1)):
            place = trials.fresh("refused")
            run = trials.run(operation, place, Fault(mode, calls, at, error))
            if run.hit < 0 and run.death is None:
                continue  # fewer calls than in the run that was counted
            name = errno.errorcode[error]
            counts[f"{name} {run.code or 'done'}"] += 1
            problem = problem_of(run, error) or attempt(
                lambda place=place, run=run: trials.check_promise(operation, place, run)
            )
            if problem:
                where = f"{mode.name} at call {at} of {total} (number {run.hit})"
                failures.append(f"{operation.name}: {name} {where}: {problem}")
                print(failures[-1], flush=True)
    return counts, failures


def main(share: float = 1.0, seed: int = 1, only: str = "", part: str = "1/1") -> int:
    """Refuse a share of all calls, each alone before any with its followers; print counts, return the failures."""
    counts, failed, operations = Counter[str](), 0, [each for each in OPERATIONS if only in each.name]
    first, _, parts = part.partition("/")
    chosen = Chosen(share, seed, (int(first), int(parts)))
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        trials = Trials(directory)
        totals = Totals(trials)
        for mode in (Mode.FAIL_ONE, Mode.FAIL_FROM):
            for operation in operations:
                more, failures = sweep(trials, totals, operation, mode, chosen)
                counts, failed = counts + more, failed + len(failures)
                print(
                    f"{mode.name} {operation.name}: {sum(more.values())} refused, {len(failures)} broken",
                    flush=True,
                )
    print(f"refusals in {len(operations)} operations, seed {seed}, part {part}: {dict(counts)}")
    print(f"{sum(counts.values())} refused calls; {failed} broken promises")
    return failed


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(bool(main(float(words[0]) if words else 1.0, *map(int, words[1:2]), *words[2:4])))
