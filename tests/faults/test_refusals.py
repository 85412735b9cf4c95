"""Refused system calls in their short form; `python -m tests.faults.refusals` is the long one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from storage import Store
from storage.errors import StoreInvalid, TxnctlError
from tests.faults.children import in_child
from tests.faults.traps import Calls, Mode, Traps, compiled
from tests.processes.child import Children

pytestmark = pytest.mark.needs_program("cc")


def test_a_refused_call_ends_in_one_clear_error_and_a_sound_store(children: Children) -> None:
    """EIO, ENOSPC and EMFILE at calls of many operations: no traceback, no signal, nothing halved, and a retry works."""
    child = children.start("tests.faults.refusals", 0.003, 1)
    lines = list(iter(lambda: child.line(300), None))
    assert child.wait() == 0, lines
    assert lines[-1].endswith("; 0 broken promises")


@pytest.mark.parametrize("error", [errno.EIO, errno.EMFILE])
def test_a_store_that_cannot_be_looked_for_is_not_created(tmp_path: Path, error: int) -> None:
    """Where the disk does not say whether a directory is there, creation fails, and looks no further up."""

    Store.create(tmp_path / "loads" / "modules")

    def create() -> str:
        traps = Traps(compiled("syscalls"))
        traps.install()
        traps.arm(Mode.FAIL_FROM, Calls.READS, 1, error)
        try:
            Store.create(tmp_path / "above" / "store")
        except TxnctlError as raised:
            return raised.code
        finally:
            traps.disarm()
        return "created"

    ended = in_child(create)
    assert ended.death is None
    assert ended.result in (StoreInvalid.code, "too-many-files")
    assert os.listdir(tmp_path) == ["loads"]
