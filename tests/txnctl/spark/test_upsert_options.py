"""The options of an upsert."""

from __future__ import annotations

import pytest

from storage.errors import InvalidValue
from txnctl.spark import options
from txnctl.spark.upsert_options import UpsertOptions


def test_the_columns_of_an_upsert() -> None:
    """The key has a name by default; the others are optional; a write without the option is an append."""
    given = {"path": "/s", "table": "accounts"}
    assert options.write(given).upsert is None
    assert options.write(given | {"upsert": "false"}).upsert is None
    assert options.write(given | {"upsert": "true"}).upsert == UpsertOptions("key", None, None)
    named = given | {"upsert": "true", "key": "account", "deleteColumn": "gone", "ordercolumn": "at"}
    assert options.write(named).upsert == UpsertOptions("account", "gone", "at")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"table": "accounts", "orderColumn": "at"}, "orderColumn goes with upsert"),
        ({"topic": "orders", "upsert": "true"}, "an upsert writes to a table"),
        ({"table": "accounts", "upsert": "yes"}, "upsert is true or false"),
        ({"table": "accounts", "upsert": "true", "orderColumn": "key"}, "from different columns"),
    ],
)
def test_options_that_do_not_fit_an_upsert(given: dict[str, str], problem: str) -> None:
    """Each names what to write instead."""
    with pytest.raises(InvalidValue, match=problem):
        options.write({"path": "/s", **given})
