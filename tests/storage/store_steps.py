"""Steps that the tests of store share."""

from __future__ import annotations

import threading
from collections.abc import Callable


def run_in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run `work` in so many threads at once; the first exception of any of them is raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def guarded(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except BaseException as error:  # noqa: BLE001 - it is raised again below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
