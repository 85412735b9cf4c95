"""Clients: `txnctl/demo/clients.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import Store, TxnctlError
from txnctl.demo import clients, generator
from txnctl.demo.casualty import start_and_kill
from txnctl.demo.clients import BusinessE, ClientA1, ClientA2
from txnctl.pipelines.conservation import Conservation, sums_by_version


def test_a_client_that_fails_is_named_in_one_line(tmp_path: Path) -> None:
    """Client A1 without a store to work on: an error that says who and why, and keeps all that was said."""
    lines = [line for line in generator.generate(1, 1) if not line.is_remittance]
    with (
        pytest.raises(TxnctlError, match=r"client A1, a process of its own, failed: .*missing") as caught,
        ClientA1(str(tmp_path / "missing"), lines),
    ):
        pass
    assert "\n" not in caught.value.message
    assert caught.value.details["status"] == 6
    with pytest.raises(TxnctlError, match=r"E, a process of its own, failed: .*StoreNotFound"):
        start_and_kill(str(tmp_path / "missing"))


def test_no_half_of_a_remittance_is_ever_booked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where each message is a batch of E: the sum of all balances is the same at every version."""
    Store.create(path := str(tmp_path / "store"))
    with Store.open(path) as store:
        store.create_topic(clients.REQUESTS)
        store.create_topic(clients.BALANCES)
        store.create_table(clients.ACCOUNTS)
        lines = [line for line in generator.generate(20, 1) if line.is_remittance][:5]
        sender, business = ClientA2(store), BusinessE(store)
        for line in lines:
            assert sender.remit(line) == 2
        monkeypatch.setattr(clients, "BATCH", 1)
        assert business.work() == 10
        sender.close()
        business.close()
        assert sums_by_version(store, clients.ACCOUNTS) == Conservation(10, [])
        assert sum(clients.balances(store).values()) == 0
