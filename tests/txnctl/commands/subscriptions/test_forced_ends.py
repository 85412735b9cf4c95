"""What a change evicted and aborted first, in lines."""

from __future__ import annotations

import pytest

from storage.values.txn_id import TxnID
from txnctl.commands.subscriptions.forced_ends import aborted_lines


@pytest.mark.parametrize(("dry_run", "verb"), [(True, "would be"), (False, "were")])
def test_a_kind_is_a_line(dry_run: bool, verb: str) -> None:
    """A dry run says what would be."""
    assert list(aborted_lines(dry_run, [TxnID.parse("0:1")], ["a", "b"])) == [
        f"Consumers {verb} evicted: a, b.",
        f"Transactions {verb} aborted: 0:1.",
    ]


def test_nothing_is_no_line() -> None:
    """Also where the change evicts nobody at all."""
    assert list(aborted_lines(False, [])) == []
    assert list(aborted_lines(False, [TxnID.parse("0:2")], [])) == ["Transactions were aborted: 0:2."]
