"""The end of a `with` block around an object of the store, behind an error and behind an interrupt (Ctrl-C)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import finalize

from storage.errors import TxnctlError


class BlockEnd:
    """The `__exit__` of a class whose blocks never stay open.

    Python handles a signal before the first line of a function, also of an `__exit__`: the interrupted end of the block
    then never runs. But Python looks `__exit__` up when the block begins, and holds the result until the block is left.
    The result is an object here, whose finalizer gives the block up where the end did not come.
    """

    __slots__ = ("_end", "_give_up")

    def __init__(self, end: Callable[..., None], give_up: Callable[[Any], None]) -> None:
        """Args:
        end: given the object, and the arguments of `__exit__`.
        give_up: given the object. Called by a finalizer, maybe in a different thread: nothing is written, and no lock
            is taken that a thread may hold. Nothing for a block that has ended.
        """
        self._end = end
        self._give_up = give_up

    def __get__(self, subject: Any, _: type) -> Callable[..., None]:
        return self._end if subject is None else _Block(subject, self._end, self._give_up).leave


class _Block:
    """A block in progress; see `BlockEnd`. The interpreter alone refers to the object."""

    __slots__ = ("__weakref__", "_cut", "_end", "_subject")

    def __init__(self, subject: Any, end: Callable[..., None], give_up: Callable[[Any], None]) -> None:
        self._end = end
        self._subject = subject
        # Not `__del__`, which would run at each end, and swallow an interrupt that comes there.
        self._cut = finalize(self, give_up, subject)
        self._cut.atexit = False

    def leave(self, *exc: Any) -> None:
        # A refused end may be repeated by the application; only an interrupt leaves the rest to the finalizer.
        try:
            self._end(self._subject, *exc)
        except Exception:
            self._cut.detach()
            raise
        self._cut.detach()


def close_after(block_error: type[BaseException] | None, close: Callable[[], None]) -> None:
    """Close; after an error of the block, an error of closing is not raised.

    A commit of unknown outcome, for instance, leaves a handle that cannot write any more. What stays open is ended by
    the next writer when the process has closed the store.

    Args:
        block_error: the kind of the exception that ended the block; None for none.
    """
    hidden = () if block_error is None else (TxnctlError,)
    with suppress(*hidden):
        close()
