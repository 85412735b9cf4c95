"""The progress lines of a copy of a store, and of its verification."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from txnctl.cli.context import Context
    from txnctl.output.progress import ProgressLine


class VerifyProgress:
    """The progress line of the verification behind a copy, as a context manager."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._bar: ProgressLine | None = None

    def __call__(self, _checked: str, records: int) -> None:
        """So many records more are checked."""
        if self._bar is None:
            self._bar = self._context.progress("Verify", unit="records")
        self._bar.advance(records)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)


class CopyProgress:
    """The progress line of a copy, as a context manager, begun when the engine first says how large it is."""

    def __init__(self, context: Context, label: str) -> None:
        self._context = context
        self._label = label
        self._bar: ProgressLine | None = None
        self._done_kib = 0

    def __call__(self, done_bytes: int, total_bytes: int) -> None:
        """So much of at most so much is written."""
        if self._bar is None:
            self._bar = self._context.progress(self._label, total=total_bytes >> 10, unit="KiB")
        self._bar.advance((done_bytes >> 10) - self._done_kib)
        self._done_kib = done_bytes >> 10

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)
