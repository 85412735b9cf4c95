"""A partition of a table: the rows of a range of keys as Arrow batches."""

from __future__ import annotations

import pytest

from storage import Store
from storage.errors import RequestTooOld, TableNotFound
from tests.txnctl.spark.asked import of_rows
from tests.txnctl.spark.source.table_range_steps import rows
from txnctl.spark import options
from txnctl.spark.source import table_reader


@pytest.mark.parametrize(("check", "seen"), [("minimal", b"new"), ("full", b"new"), ("none", b"v1")])
def test_the_check_mode_says_what_a_committed_intent_is_worth(
    filled: Store, path: str, check: str, seen: bytes
) -> None:
    """Without a look at its record the version before it is read."""
    txn = filled.begin_transaction()
    table = filled.table("t")
    # More keys than a commit finalises itself, so that their intents stay.
    for number in range(80):
        table.put(b"%03d" % number, b"new", txn=txn)
    filled.commit_transaction(txn)
    found = {row["key"]: row["value"] for row in rows(path, check=check)}
    assert found[b"001"] == seen


def test_an_uncommitted_value_is_never_read(filled: Store, path: str) -> None:
    """In no check mode."""
    filled.table("t").put(b"001", b"dirty", txn=filled.begin_transaction())
    for check in ("minimal", "full", "none"):
        assert b"dirty" not in [row["value"] for row in rows(path, check=check)]


def test_a_table_that_was_created_again_is_not_read_for_the_old_one(filled: Store, path: str) -> None:
    """Nor is one that is gone."""
    (part,) = table_reader.plan_partitions(options.table_read({"path": path, "table": "t"}))
    filled.admin.tables.delete_table("t")
    with pytest.raises(TableNotFound, match="there is no table"):
        list(part.batches(of_rows()))
    filled.create_table("t")
    with pytest.raises(TableNotFound, match="deleted and created again"):
        list(part.batches(of_rows()))


def test_what_is_not_kept_any_more_is_an_error(filled: Store, path: str) -> None:
    """A moment before the retention window."""
    with pytest.raises(RequestTooOld, match="is not kept any more"):
        rows(path, asOf="2001-01-01")
