"""The check of a store, in a child process.

LMDB trusts every page: a page with a flipped bit can make LMDB read outside the file, which kills the process with
SIGBUS or SIGSEGV, and nothing in Python can catch that. So the check runs in a child, which reports each step and each
problem as a JSON line; the death of the child is a problem too.

Run as a module (`python -m txnctl.commands.store.verify_child STORE full`) this is the child. The URL of a server,
which may have a password, comes in TXNCTL_STORE, and STORE is the URL without the password.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypedDict

from storage.errors import ALL, CorruptStore, StoreInvalid, TxnctlError
from storage.values.store_name import is_url
from storage.verify.problem import Problem
from txnctl.cli.settings import shown_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, Self

_MODULE = "txnctl.commands.store.verify_child"
"""The name of this module, which a child process runs as its program."""


EVIDENCE = "Keep a copy of the store as evidence, and restore a backup."
"""The hint for a damaged store that was verified."""


class _Error(TypedDict):
    """An error of the child, in JSON."""

    code: str
    message: str
    hint: str | None
    details: dict[str, Any]


class _Line(TypedDict, total=False):
    """A line of the child: the records in all; a step; a problem; an invariant checked to the end; or the error."""

    total: int
    checked: str
    records: int
    problem: tuple[int | None, str, str]
    invariant: int
    error: _Error


class Verification:
    """A check that runs, as a context manager.

    Attributes:
        path: the store.
        total: records in the store.
        done: records checked so far.
        problems: the problems so far.
        invariants: the numbers of the invariants checked to the end.

    Raises:
        StoreInvalid: the store cannot even be opened; with the kind, the message and the hint of the child's error.
    """

    def __init__(self, name: str, *, full: bool) -> None:
        from os.path import abspath

        self.path = shown_store(name) if is_url(name) else abspath(name)
        self._name = name
        self.total = 0
        self.done = 0
        self.problems: list[Problem] = []
        self.invariants: list[int] = []
        self._full = full
        self._doing = "the file"

    def __enter__(self) -> Self:
        import json
        import subprocess

        from txnctl.cli.python_child import child_environment, module_command

        self._child = subprocess.Popen(
            module_command(_MODULE, self.path, "full" if self._full else "quick"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment() | ({"TXNCTL_STORE": self._name} if is_url(self._name) else {}),
        )
        assert self._child.stdout is not None
        self._lines: Iterator[_Line] = map(json.loads, self._child.stdout)
        try:
            for line in self._lines:
                if "error" in line:
                    raise _error(line["error"])
                if "problem" in line:
                    self.problems.append(Problem(*line["problem"]))
                self.total = line.get("total", 0)
                break
        except BaseException:
            self._end()
            raise
        return self

    def steps(self) -> Iterator[int]:
        """Yield the number of records checked since the last step, to the end of the check."""
        for line in self._lines:
            if "checked" in line:
                self._doing = line["checked"]
                self.done += line["records"]
                yield line["records"]
            elif "problem" in line:
                self.problems.append(Problem(*line["problem"]))
            elif "invariant" in line:
                self.invariants.append(line["invariant"])
            elif "error" in line:
                raise _error(line["error"])
        self._note_death()

    def _note_death(self) -> None:
        """Wait for the end of the child; add a problem for a child that damaged pages have ended.

        Raises:
            StoreInvalid: something else has ended the child, as a lack of memory: no word about the store.
        """
        status = self._child.wait()
        if status == 0:
            return
        import signal

        from txnctl.cli.python_child import is_fault

        how = f"ended with code {status}"
        if status < 0:
            try:
                how = f"was killed by {signal.Signals(-status).name}"
            except ValueError:
                how = f"was killed by signal {-status}"
        if not is_fault(status):
            raise StoreInvalid(
                f"the check did not come to its end: its process {how}",
                hint="This says nothing of the store. Try again; dmesg tells of a lack of memory.",
            )
        message = f"reading it is not safe: the process that checked it {how} after checking {self._doing}"
        self.problems.append(Problem(None, "store" if is_url(self._name) else "data.mdb", message))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()
        assert self._child.stdout is not None
        self._child.stdout.close()


def _error(fields: _Error) -> Exception:
    """Return the error of the child, for the parent to raise."""
    from txnctl.output.shell import name_in

    kind, hint = ALL.get(fields["code"], CorruptStore), fields["hint"]
    if kind is CorruptStore:
        hint = EVIDENCE  # The hint of other commands is to verify.
    return kind(fields["message"], hint=hint and name_in(hint), **fields["details"])


def _check(path: str, full: bool) -> None:
    """Run the check in the child: open the store, check, report steps and problems as lines of JSON."""
    import json
    import signal

    # Ctrl-C reaches the parent as well, and the parent prints the message; a child without a parent ends silently.
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)

    def tell(line: _Line) -> None:
        # In ASCII, whichever encoding the environment gives to standard output.
        sys.stdout.buffer.write(json.dumps(line).encode("ascii") + b"\n")
        sys.stdout.buffer.flush()

    from storage import Store
    from txnctl.output.shell import hint_of

    try:
        with Store.open(path, read_only=True, program="txnctl store verify") as store:
            tell({"total": sum(row.entries for row in store.reports.list_databases())})
            for problem in store.maintenance.verify_store(
                full=full,
                progress=lambda what, records: tell({"checked": what, "records": records}),
                checked=lambda number: tell({"invariant": number}),
            ):
                tell({"problem": problem})
    except TxnctlError as error:
        details = json.loads(json.dumps(error.details, default=str))
        tell(
            {
                "error": {
                    "code": error.code,
                    "message": error.message,
                    "hint": hint_of(error),
                    "details": details,
                }
            }
        )
    except Exception as error:  # noqa: BLE001  what reading a damaged page may raise has no end
        tell({"problem": (None, "store", f"it cannot be read: {type(error).__name__}: {error}")})


if __name__ == "__main__":
    from os import environ

    _check(environ["TXNCTL_STORE"] if is_url(sys.argv[1]) else sys.argv[1], sys.argv[2] == "full")
