"""Fixtures of the tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import Store


@pytest.fixture
def path(verified_path: Path) -> Path:
    """A store with three accounts, named to every command of the test, and verified in full at the end."""
    with Store.open(verified_path) as store:
        store.create_table("accounts")
        for number in (1, 2, 3):
            store.table("accounts").put(b"B%d" % number, b"%d00" % number)
    return verified_path
