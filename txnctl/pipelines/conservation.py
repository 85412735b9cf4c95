"""The sum of all balances at every kept version of a table: conserved where each change moves money and makes none.

A version is one transaction. Where a transfer is cut apart between two transactions, the sum is wrong in between, and
right again at the end: only the versions show it.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from txnctl.pipelines.hellers import parse_hellers

if TYPE_CHECKING:
    from storage import Store

_NS_PER_MS = 1_000_000


class SumChange(NamedTuple):
    """A version at which the sum of all balances changed; sums in hundredths."""

    version: int
    before: int
    after: int


class Conservation(NamedTuple):
    """The number of versions that were looked at, and those at which the sum changed, in order."""

    versions: int
    changes: list[SumChange]


def sums_by_version(store: Store, table: str) -> Conservation:
    """Compare the sum of all balances at every version that the table keeps in full.

    A value that is no amount counts as nothing.
    """
    accounts, info = store.table(table), store.reports.store_info()
    horizon = (store.connection.clock.wall_ms() - info.table_retention_ms) * _NS_PER_MS
    changes: Counter[int] = Counter()
    start = 0
    for row in accounts.scan():
        balance = 0
        for version in reversed(accounts.versions(row.key)):
            if version.intent and version.state != "COMMITTED":
                continue
            now = _hellers(version.value)
            if version.version_ns <= horizon:
                start += now - balance
            else:
                changes[version.version_ns] += now - balance
            balance = now
    versions = sorted(changes)
    sums = list(accumulate((changes[version] for version in versions), initial=start))
    return Conservation(
        len(versions),
        [
            SumChange(version, before, after)
            for version, before, after in zip(versions, sums, sums[1:], strict=False)
            if before != after
        ],
    )


def _hellers(value: bytes | None) -> int:
    try:
        return 0 if value is None else parse_hellers(value.decode())
    except ValueError:
        return 0
