"""The transaction of a command line: the one that is named, else that of the environment."""

from __future__ import annotations

import pytest

from storage.errors import InvalidTxnId, InvalidValue
from storage.values.txn_id import TxnID
from txnctl.cli.current_transaction import named_or_current


def test_the_named_one_comes_before_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is not even looked at."""
    monkeypatch.setenv("TXNCTL_TXN", "nonsense")
    assert named_or_current(TxnID(3)) == TxnID(3)


def test_the_environment_names_it_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an argument would."""
    for text in ("0:42", "(0,42)", "42"):
        monkeypatch.setenv("TXNCTL_TXN", text)
        assert named_or_current(None) == TxnID(42)


def test_without_either_it_is_bad_input() -> None:
    """The hint says where to look."""
    with pytest.raises(InvalidValue, match="TXNCTL_TXN is not set") as refused:
        named_or_current(None)
    assert refused.value.hint is not None
    assert "transactions list" in refused.value.hint


def test_nonsense_is_told_with_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nobody knew where it came from."""
    monkeypatch.setenv("TXNCTL_TXN", "0:0")
    with pytest.raises(InvalidTxnId) as refused:
        named_or_current(None)
    assert refused.value.message.startswith("TXNCTL_TXN: '0:0'")
