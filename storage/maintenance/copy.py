"""Copy the data file of a store from one view, while other processes go on writing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from storage.disk.lmdb.directory import DATA, data_bytes, give_to_owner
from storage.engine import Engine
from storage.maintenance.store_directory import environment_of

Progress = Callable[[int, int], None]
"""(bytes written, bytes of the source file, which the copy never exceeds)"""

_PIECE_BYTES = 1 << 20


def copy_data(engine: Engine, build_dir: str, progress: Progress | None) -> None:
    """Copy the data file from one view. The caller syncs the copy, after its last change.

    LMDB copies in one call that nothing interrupts. The call runs in a thread and writes into a pipe; this thread
    reads the pipe and writes the file. An exception in this thread closes the pipe, which ends the copy.
    """
    environment = environment_of(engine, "copied as a file", "Copy it to a directory with {}.")
    total = data_bytes(environment.path)
    source, sink = os.pipe()
    failures: list[BaseException] = []

    def copy() -> None:
        try:
            environment.copy(sink)
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            failures.append(error)
        finally:
            os.close(sink)

    thread = threading.Thread(target=copy, name="txnctl-copy")
    thread.start()
    try:
        with open(os.path.join(build_dir, DATA), "xb", opener=_private) as file:
            give_to_owner(file.fileno(), build_dir)
            done = 0
            while piece := os.read(source, _PIECE_BYTES):
                file.write(piece)
                done += len(piece)
                if progress is not None:
                    progress(done, max(done, total))
    finally:
        os.close(source)
        thread.join()
    if failures:
        raise failures[0]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
