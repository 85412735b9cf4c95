"""Steps that the tests of read share."""

from __future__ import annotations

from collections.abc import Callable

from storage import CheckMode, TxnID

WriteMany = Callable[[TxnID, dict[bytes, bytes]], None]


MODES = list(CheckMode)
