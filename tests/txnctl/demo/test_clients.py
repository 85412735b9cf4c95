"""Clients: `txnctl/demo/clients.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import TxnctlError
from txnctl.demo import generator
from txnctl.demo.casualty import start_and_kill
from txnctl.demo.clients import ClientA1


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
