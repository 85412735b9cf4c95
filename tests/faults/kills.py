"""A kill at every system call of every operation, and in the middle of every write.

    python -m tests.faults.kills [SHARE [SEED [OPERATION]]]

SHARE of the calls is tried, chosen by chance; 1 is all of them. After each kill the store is verified in full, what is left
is the state before the operation or after it (after it where it was acknowledged), and a retry leads on from there.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections import Counter

from tests.faults.operations import OPERATIONS, Operation
from tests.faults.traps import Calls, Mode
from tests.faults.trials import Fault, Trials, attempt


def sweep(trials: Trials, operation: Operation, share: float, chance: random.Random) -> tuple[int, list[str]]:
    """Kill an operation at its calls; the number of kills, and what is wrong."""
    failures, kills = [], 0
    for mode, calls in ((Mode.KILL, Calls.EVERY), (Mode.KILL_HALF, Calls.CHANGES)):
        place = trials.fresh("counted")
        total = trials.run(operation, place, Fault(Mode.COUNT, calls, 0)).calls
        for at in range(1, total + 1):
            if chance.random() >= share:
                continue
            place = trials.fresh("killed")
            run = trials.run(operation, place, Fault(mode, calls, at))
            if run.exit_code is not None:
                continue  # fewer calls than in the run that was counted: nothing was killed
            kills += 1
            problem = attempt(lambda place=place, run=run: trials.check_promise(operation, place, run))
            if run.death != "ended by signal 9":
                problem = run.death
            if problem:
                failures.append(f"{operation.name}: {mode.name} at call {at} of {total}: {problem}")
                print(failures[-1], flush=True)
    return kills, failures


def main(share: float = 1.0, seed: int = 1, only: str = "") -> int:
    """Kill at a share of all calls; print the counts, and return the number of failures."""
    chance, counts, failed = random.Random(seed), Counter[str](), 0
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        trials = Trials(directory)
        for operation in OPERATIONS:
            if only in operation.name:
                kills, failures = sweep(trials, operation, share, chance)
                counts[operation.name], failed = kills, failed + len(failures)
    print(f"kills of {len(counts)} operations, seed {seed}: {dict(counts)}")
    print(f"{sum(counts.values())} kills; {failed} broken promises")
    return failed


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(bool(main(float(words[0]) if words else 1.0, *map(int, words[1:2]), *words[2:3])))
