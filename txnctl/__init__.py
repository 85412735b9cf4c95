"""txnctl: durable topics with transactions and isolation levels per subscription, from the command line.

The Python interface is the package `storage`; the public names are here too, loaded on first use, so that the start of
the command line pays for none.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import (
        EARLIEST as EARLIEST,
        LATEST as LATEST,
        IsolationLevel as IsolationLevel,
        Store as Store,
        SubscriptionType as SubscriptionType,
    )

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """A public name of `storage`, loaded now."""
    if name.startswith("__"):
        raise AttributeError(f"module 'txnctl' has no attribute {name!r}")
    import storage

    try:
        value: object = getattr(storage, name)
    except AttributeError:
        raise AttributeError(f"module 'txnctl' has no attribute {name!r}") from None
    globals()[name] = value
    return value
