"""A URL that libpq cannot read is refused as an argument, before any connection is made."""

from __future__ import annotations

import pytest

from storage.disk.postgres.connecting import connected
from storage.disk.postgres.url import StoreUrl
from storage.errors import InvalidValue
from storage.process.clock import SYSTEM_CLOCK


def test_an_unknown_parameter_is_named() -> None:
    """libpq knows its parameters, and names the unknown one."""
    with pytest.raises(InvalidValue, match=r"cannot be read: .*colour"):
        connected(StoreUrl.parse("postgresql://u@h/d?colour=red"), SYSTEM_CLOCK, "test")


def test_a_part_of_a_password_is_not_repeated() -> None:
    """libpq shows the token that it cannot decode, which may be the password."""
    with pytest.raises(InvalidValue, match=r"^the URL of a store cannot be read$"):
        connected(StoreUrl.parse("postgresql://u:sec%zzret@h/d"), SYSTEM_CLOCK, "test")
