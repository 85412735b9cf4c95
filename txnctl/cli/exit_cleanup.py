"""The way out of an interrupted or failed command: clean up in the store, but do not wait long for the writer gate."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import Store

_LEAVE_S = 1.0
"""Seconds to wait for the writer gate. After the end of the process the next writer cleans up as well."""


def leave_soon(store: Store) -> None:
    """Shorten every later wait for the writer gate."""
    store.connection.cap_lock_timeout(_LEAVE_S)
