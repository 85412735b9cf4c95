"""EIO, ENOSPC and EMFILE at every system call of every operation.

    python -m tests.faults.refusals [SHARE [SEED [OPERATION]]]

SHARE of the calls is tried, chosen by chance; 1 is all of them, once refused alone and once with all calls of the kind
after it. The operation succeeds, or ends with one error of txnctl and its exit code: no traceback, no signal, no "bug".
The store is sound, what is left is the state before or after, and a retry leads on from there.
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
_OWN_WORDS: Final = (
    "too many files are open",
    "MDB_INVALID",  # LMDB's answer where it cannot lock a new file
)
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
    if run.code not in (None, *_CODES[error]):
        return f"the wrong kind of error: {run.errors}"
    return None


def sweep(
    trials: Trials, operation: Operation, share: float, chance: random.Random
) -> tuple[Counter[str], list[str]]:
    """Refuse the calls of an operation; counts by error and code, and what is wrong."""
    counts, failures = Counter[str](), []
    for error, calls in KINDS:
        place = trials.fresh("counted")
        total = trials.run(operation, place, Fault(Mode.COUNT, calls, 0)).calls
        for at in range(1, total + 1):
            for mode in (Mode.FAIL_ONE, Mode.FAIL_FROM):
                if chance.random() >= share:
                    continue
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


def main(share: float = 1.0, seed: int = 1, only: str = "") -> int:
    """Refuse a share of all calls; print the counts, and return the number of failures."""
    chance, counts, failed, operations = random.Random(seed), Counter[str](), 0, 0
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        trials = Trials(directory)
        for operation in OPERATIONS:
            if only in operation.name:
                more, failures = sweep(trials, operation, share, chance)
                counts, failed, operations = counts + more, failed + len(failures), operations + 1
    print(f"refusals in {operations} operations, seed {seed}: {dict(counts)}")
    print(f"{sum(counts.values())} refused calls; {failed} broken promises")
    return failed


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(bool(main(float(words[0]) if words else 1.0, *map(int, words[1:2]), *words[2:3])))
