"""Steps that the tests of produce share."""

from __future__ import annotations

from pathlib import Path

from storage import EARLIEST, IsolationLevel, Message, Store


def stored(
    path: Path, topic: str = "orders", level: IsolationLevel = IsolationLevel.READ_COMMITTED
) -> list[Message]:
    """The messages of the topic."""
    with Store.open(path, read_only=True) as store:
        return list(store.reader(topic, start=EARLIEST, isolation_level=level))


def values(path: Path, topic: str = "orders") -> list[bytes | None]:
    return [message.value for message in stored(path, topic)]
