"""A driver of its own that adopts what a test has staged, for tests that kill it, stop it or set it beside another.

python -m tests.txnctl.spark.adopter STORE STAGING BATCH                  adopts the pickled batch, and says what came of it
python -m tests.txnctl.spark.adopter STORE STAGING BATCH kill POINT N     is killed when POINT is reached the N-th time
python -m tests.txnctl.spark.adopter STORE STAGING BATCH pause            waits for a line after the first rows
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from storage import Store, faults
from tests.processes.parent import hear, say
from txnctl.spark.sink import adoption
from txnctl.spark.sink.staging import Staging


def killer(nth: int) -> Callable[[], None]:
    """Kills this process when it is called the `nth` time."""
    reached = 0

    def reach() -> None:
        nonlocal reached
        reached += 1
        if reached == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


def main() -> None:
    path, place, batch_path, *how = sys.argv[1:]
    batch = pickle.loads(Path(batch_path).read_bytes())
    paused = []

    def pause(done: int, _rows: int) -> None:
        if not paused:
            paused.append(done)
            say("sent", done)
            hear()

    if how[:1] == ["kill"]:
        faults.arm(how[1], killer(int(how[2])))
    on_progress = pause if how == ["pause"] else None
    with Store.open(path, lock_timeout=30) as store:
        adopted = adoption.adopt(store, Staging.at(place), batch, on_progress)
        adoption.clean_up(Staging.at(place), [])
    say("already" if adopted.was_stored else "adopted", adopted.rows)


if __name__ == "__main__":
    main()
