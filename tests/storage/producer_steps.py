"""Steps that the tests of producer share."""

from __future__ import annotations

from storage import Store


def values(store: Store, topic: str = "t") -> list[bytes | None]:
    return [message.value for message in store.reader(topic)]
