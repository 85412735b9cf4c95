"""Trials of operations on copies of one prepared store: undisturbed for reference, disturbed, judged, tried again."""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import signal
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from storage.errors import OutcomeUnknown
from tests.faults import operations
from tests.faults.children import Ended, in_child
from tests.faults.operations import Operation
from tests.faults.traps import Calls, Mode, Traps, compiled


class Fault(NamedTuple):
    """What happens to the N-th call of some kinds."""

    mode: Mode
    calls: Calls
    at: int
    error: int = 0


class Run(NamedTuple):
    """The end of an operation.

    Attributes:
        exit_code: None where its process was killed.
        calls: that were counted.
        hit: the number of the call that met the fault; -1 for none.
        output, errors: what it printed.
        death: how its process died otherwise.
    """

    exit_code: int | None
    calls: int
    hit: int
    output: bytes
    errors: str
    death: str | None

    @property
    def code(self) -> str | None:
        """The code of the error that was reported."""
        for line in self.errors.splitlines():
            if line.startswith("{"):
                return str(json.loads(line)["code"])
        return None


class Reference(NamedTuple):
    """An operation that nothing disturbs: its end and what it leaves, once and twice, and the files of both."""

    first: Run
    after: dict[str, Any]
    second: Run
    twice: dict[str, Any]
    files: set[str]


class Trials:
    """The prepared store below a directory, and copies of it."""

    def __init__(self, directory: str) -> None:
        operations.shorten_steps()
        self._directory = directory
        self._template = os.path.join(directory, "template")
        self._library = compiled("syscalls")
        os.makedirs(self._template)
        operations.build(self._template)
        self._load()
        place = self.fresh("before")
        self.before = self.observe(place)
        self._references: dict[str, Reference] = {}

    def _load(self) -> None:
        """Let every operation run once in this process, so that no child has a module to load."""
        streams = [os.dup(number) for number in range(3)]
        for operation in operations.OPERATIONS:
            operations.run(operation, self.fresh("loading"))
        operations.observe(self.fresh("loading"))
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    def fresh(self, name: str) -> str:
        """A copy of the prepared store."""
        place = os.path.join(self._directory, name)
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self._template, place)
        return place

    def run(self, operation: Operation, place: str, fault: Fault | None = None) -> Run:
        """Run an operation in a process of its own, with a fault."""
        fault = fault or Fault(Mode.COUNT, Calls.EVERY, 0)

        def run() -> tuple[int, int, int]:
            traps = Traps(self._library)
            traps.install()
            try:
                code = operations.run(
                    operation, place, lambda: traps.arm(fault.mode, fault.calls, fault.at, fault.error)
                )
            finally:
                traps.disarm()
            return code, traps.count(), traps.hit()

        ended = in_child(run)
        code, calls, hit = ended.result or (None, 0, -1)
        output, errors = (_content(os.path.join(place, name)) for name in ("output", "errors"))
        return Run(code, calls, hit, output, errors.decode(errors="replace"), ended.death)

    def observe(self, place: str) -> dict[str, Any]:
        """What users see there.

        Raises:
            AssertionError: the store is not sound; with the traceback.
        """
        ended: Ended = in_child(lambda: operations.observe(place))
        assert ended.death is None, ended.death
        result: dict[str, Any] = ended.result
        for seen in result.values():
            # Trimmed on the way, by whichever commit comes first; trimming itself is done in steps.
            seen["topics"].pop(operations.TRIMMED, None)
        return result

    def _is_untouched(self, place: str) -> bool:
        """Whether the data files hold the bytes of the prepared stores: another look would see the same."""
        made = (os.path.join(place, "other"), os.path.join(place, "empty", "data.mdb"))
        stores = (os.path.join("store", "data.mdb"), os.path.join("old", "data.mdb"))
        return not any(map(os.path.lexists, made)) and all(
            filecmp.cmp(os.path.join(self._template, data), os.path.join(place, data), shallow=False)
            for data in stores
        )

    def reference(self, operation: Operation) -> Reference:
        """The operation, undisturbed."""
        if operation.name not in self._references:
            place = self.fresh("reference")
            first = self.run(operation, place)
            files, after = _files(place), self.observe(place)
            second = self.run(operation, place)
            files |= _files(place)
            self._references[operation.name] = Reference(first, after, second, self.observe(place), files)
            assert first.exit_code == 0, first
        return self._references[operation.name]

    def check_promise(self, operation: Operation, place: str, run: Run) -> None:
        """What is left is the state before or after, after it where it was acknowledged; a retry leads on from there.

        An error leaves the state before, unless its code is `outcome-unknown`. After the retry no file is there that an
        undisturbed operation would not have left.

        Raises:
            AssertionError
        """
        reference = self.reference(operation)
        is_acknowledged = run.exit_code == 0 or (run.exit_code is None and bool(run.output))
        left = self.before if self._is_untouched(place) else self.observe(place)
        if operation.is_in_steps:
            assert not (is_acknowledged and run.exit_code == 0) or left == reference.after, (
                "acknowledged and lost"
            )
        elif is_acknowledged:
            assert left == reference.after, f"acknowledged and lost: {difference(reference.after, left)}"
        elif "created the store, but" in run.errors:
            assert left == reference.after, f"not created: {difference(reference.after, left)}"
        elif run.exit_code not in (None, OutcomeUnknown.exit_code) and not operation.is_followed:
            assert left == self.before, f"refused and stored: {difference(self.before, left)}"
        else:
            assert left in (self.before, reference.after), f"halved: {difference(self.before, left)}"
        again = self.run(operation, place)
        assert again.death is None, again.death
        files = {name for name in _files(place) - reference.files if not _COLLECTED.fullmatch(name)}
        assert not files, f"left behind for good: {files}"
        finally_ = self.observe(place)
        if operation.is_in_steps:
            assert again.exit_code in (0, reference.second.exit_code), again
            if operation.converges:
                ends = (reference.after, reference.twice)
                assert finally_ in ends, f"a retry leads elsewhere: {difference(reference.after, finally_)}"
            return
        is_second = left == reference.after and reference.after != self.before
        expected, wanted = (
            (reference.twice, reference.second) if is_second else (reference.after, reference.first)
        )
        assert again.exit_code == wanted.exit_code, f"a retry ends with {again.exit_code}: {again.errors}"
        assert finally_ == expected, f"a retry leads elsewhere: {difference(expected, finally_)}"


def _files(place: str) -> set[str]:
    """The files and directories below a place, by their paths there."""
    return {
        os.path.relpath(os.path.join(directory, name), place)
        for directory, directories, files in os.walk(place)
        for name in (*directories, *files)
    }


_COLLECTED: Final = re.compile(r"empty/\.store\.[0-9]+\.new")
"""A build directory inside a store, where every call of its removal was refused: a gc of the store removes it."""


def difference(expected: Any, found: Any, path: str = "") -> str:
    """The first place at which two observations differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in sorted({*expected, *found}, key=str):
            if expected.get(name) != found.get(name):
                return difference(expected.get(name), found.get(name), f"{path}/{name}")
    return f"{path}: {found!r:.200} for {expected!r:.200}"


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def attempt(action: Callable[[], None]) -> str | None:
    """The words of the assertion that an action fails with; None if it does not."""
    try:
        action()
    except AssertionError as error:
        return str(error)
    return None
