"""Refused system calls in their short form; `python -m tests.faults.refusals` is the long one."""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path

import pytest

from storage import Store
from storage.errors import OutcomeUnknown, StoreInvalid, TxnctlError
from tests.faults.children import in_child, in_children
from tests.faults.refusals import KINDS
from tests.faults.traps import Calls, Mode, Traps, compiled
from tests.processes.child import Children

pytestmark = pytest.mark.needs_program("cc")


def test_a_refused_call_ends_in_one_clear_error_and_a_sound_store(children: Children) -> None:
    """EIO, ENOSPC and EMFILE at calls of many operations: no traceback, no signal, nothing halved, and a retry works."""
    child = children.start("tests.faults.refusals", 0.001, 1)
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


@pytest.mark.parametrize(
    ("error", "calls"), [(errno.EIO, Calls.READS | Calls.OPENS), (errno.EMFILE, Calls.OPENS)]
)
def test_a_refused_creation_names_the_cause_and_leaves_nothing(memory: str, error: int, calls: Calls) -> None:
    """Each call refused alone: the words of the system, a next step that fits them, and no build directory."""
    Store.create(os.path.join(memory, "loads", "modules"))

    def create(place: str, mode: Mode, at: int) -> tuple[int, str | None, str | None]:
        traps = Traps(compiled("syscalls"))
        traps.install()
        traps.arm(mode, calls, at, error)
        try:
            Store.create(os.path.join(place, "above", "store"))
        except TxnctlError as raised:
            return traps.count(), raised.message, str(raised.hint)
        finally:
            traps.disarm()
        return traps.count(), None, None

    total = in_child(partial(create, os.path.join(memory, "counted"), Mode.COUNT, 0)).result[0]
    tries = (
        (at, partial(create, os.path.join(memory, str(at)), Mode.FAIL_ONE, at)) for at in range(1, total + 1)
    )
    for ended in in_children(tries, 2):
        assert ended.death is None, ended
        _, message, hint = ended.result
        causes = (os.strerror(error), "too many files are open", "the disk refused a change")
        assert message is None or any(cause in message for cause in causes), ended
        steps = ("open files", "dmesg", "Nothing was stored.", "Use the store, or remove it")
        assert message is None or any(step in hint for step in steps), ended
        above = os.path.join(memory, str(ended.name), "above")
        left = os.listdir(above) if os.path.isdir(above) else []
        assert left in ([], ["store"]), (ended, left)
        assert (message is None) <= (left == ["store"])


@pytest.mark.parametrize(("error", "calls"), KINDS)
def test_an_error_means_that_nothing_was_stored(memory: str, error: int, calls: Calls) -> None:
    """Each call of a change refused alone: stored without an error, an error without a change, or an unknown outcome."""

    def create(place: str, mode: Mode, at: int) -> tuple[int, str | None, bool]:
        path, traps, code = os.path.join(memory, place), Traps(compiled("syscalls")), None
        Store.create(path)
        with Store.open(path) as store:
            store.create_topic("before")
            traps.install()
            traps.arm(mode, calls, at, error)
            try:
                store.create_topic("orders")
            except TxnctlError as raised:
                code = raised.code
            finally:
                traps.disarm()
        with Store.open(path) as store:
            store.create_topic("after")
            return traps.count(), code, store.has_topic("orders")

    total = in_child(partial(create, "counted", Mode.COUNT, 0)).result[0]
    tries = ((at, partial(create, str(at), Mode.FAIL_ONE, at)) for at in range(1, total + 1))
    for ended in in_children(tries, 2):
        assert ended.death is None, ended
        _, code, is_stored = ended.result
        assert code == OutcomeUnknown.code or is_stored is (code is None), ended


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_close_hides_no_error_of_its_block(memory: str, error: int) -> None:
    """A commit of unknown outcome latches the handle, so the consumer and producer around it cannot leave."""

    def send(place: str, mode: Mode, at: int) -> tuple[int, str | None]:
        path, traps = os.path.join(memory, place), Traps(compiled("syscalls"))
        Store.create(path)
        with Store.open(path) as store:
            store.create_topic("orders")
            traps.install()
            try:
                with (
                    store.subscribe("orders", "billing"),
                    store.create_producer("orders") as producer,
                    store.transaction() as txn,
                ):
                    producer.send(b"one", txn=txn)
                    traps.arm(mode, Calls.CHANGES, at, error)
                    txn.commit()
            except TxnctlError as raised:
                return traps.count(), raised.code
            finally:
                traps.disarm()
        return traps.count(), None

    total = in_child(partial(send, "counted", Mode.COUNT, 0)).result[0]
    tries = ((at, partial(send, str(at), Mode.FAIL_FROM, at)) for at in range(1, total + 1))
    codes = [ended.result[1] if ended.death is None else ended.death for ended in in_children(tries, 2)]
    assert (
        set(codes) <= {None, "store-invalid", "store-full", "outcome-unknown"} and "outcome-unknown" in codes
    ), codes
