"""`@TIME` on the command line: parsed here, and resolved here to the first position published at or after TIME."""

from __future__ import annotations

from storage.errors import InvalidPosition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import Store
    from storage.values.position import Start
    from txnctl.cli.of_now import OfNow


class AtTime:
    """`@TIME` as typed: the first message published at or after that time, which may be an age: `@2h`."""

    __slots__ = ("time_ms",)

    def __init__(self, time_ms: int) -> None:
        self.time_ms = time_ms

    @classmethod
    def parse(cls, text: str) -> AtTime | OfNow:
        """Read the time after the `@`.

        Raises:
            InvalidPosition: the text after the `@` is no time.
        """
        from txnctl.cli.of_now import mapped
        from txnctl.cli.time_values import TIME

        time_ms = TIME.read(text)
        if time_ms is None:
            raise InvalidPosition(
                f"{text[:80]!r} is not a time",
                hint="Write an age (@2h), RFC 3339 with a zone (@2024-05-01T10:00:00Z), a date, or milliseconds since "
                "1970.",
                position=text[:80],
            )
        return mapped(time_ms, cls)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AtTime) and other.time_ms == self.time_ms

    def __hash__(self) -> int:
        return hash(self.time_ms)

    def __repr__(self) -> str:
        return f"AtTime({self.time_ms})"


def position_of(store: Store, topic: str, start: Start | AtTime) -> Start:
    """Resolve `@TIME` to a position of the topic; every other start is a position already."""
    return store.reports.position_at(topic, start.time_ms) if isinstance(start, AtTime) else start
