"""Waiting for a topic and leaving a topic, for `produce`, `producers open` and `producers lead`."""

from __future__ import annotations

from storage.errors import InvalidValue, TxnctlError
from txnctl.cli.exit_cleanup import leave_soon

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import AccessMode
    from storage.client.producer import Producer
    from txnctl.cli.context import Context

_AHEAD_SHOWN = 3


class WaitNote:
    """Callback of `on_wait`: note the producers ahead and the time limit, once.

    Attributes:
        said: whether the note was printed.
    """

    def __init__(self, context: Context, topic: str, timeout: float | None) -> None:
        self._context = context
        self._topic = topic
        self._timeout = timeout
        self.said = False

    def __call__(self, ahead: list[str]) -> None:
        from txnctl.output.human import duration

        self.said = True
        more = len(ahead) - _AHEAD_SHOWN
        shown = ", ".join(ahead[:_AHEAD_SHOWN]) + (f" and {more} more" if more > 0 else "")
        behind = f" behind {shown}" if shown else ""
        until = "" if self._timeout is None else f"; giving up after {duration(round(self._timeout * 1000))}"
        self._context.note(f"waiting for {self._topic}{behind}{until}")


def check_timeout(timeout: float | None, mode: AccessMode) -> None:
    """Refuse --timeout for an access mode that does not wait.

    Raises:
        InvalidValue
    """
    from storage import AccessMode

    if timeout is not None and mode is not AccessMode.WAIT_FOR_EXCLUSIVE:
        raise InvalidValue(
            f"--timeout is how long WaitForExclusive waits; {mode.value} does not wait",
            hint="Leave it out, or wait: --access-mode WaitForExclusive.",
        )


class Leaving:
    """Close the producer at the end of a `with`, except after an interrupt. An interrupted command ends at once, and
    the kernel releases the lock of the session; the same holds where closing fails.
    """

    def __init__(self, context: Context, producer: Producer) -> None:
        self._context = context
        self._producer = producer

    def __enter__(self) -> Producer:
        return self._producer

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if error is not None and not isinstance(error, Exception):
            return
        leave_soon(self._context.store)
        try:
            self._producer.close()
        except TxnctlError:
            return
