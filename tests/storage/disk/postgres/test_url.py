"""The URL of a store names one store by one text, without its password."""

from __future__ import annotations

import pytest

from storage.disk.postgres.url import StoreUrl
from storage.errors import InvalidValue


def test_the_store_is_taken_out_for_libpq() -> None:
    """Several hosts are left to libpq, which looks for the primary."""
    url = StoreUrl.parse("postgresql://anna@a,b:5433/bank?store=ledger&sslmode=require")
    assert url.store == "ledger"
    assert url.conninfo == "postgresql://anna@a,b:5433/bank?sslmode=require&target_session_attrs=primary"
    assert url.shown == "postgresql://anna@a,b:5433/bank?sslmode=require&store=ledger"


def test_the_store_is_txnctl_unless_named() -> None:
    """Both forms are one store."""
    named, unnamed = StoreUrl.parse("postgresql://h/d?store=txnctl"), StoreUrl.parse("postgresql://h/d")
    assert named.shown == unnamed.shown == "postgresql://h/d?store=txnctl"


def test_parsing_the_shown_url_changes_nothing() -> None:
    """Pasted lines name the same store."""
    shown = StoreUrl.parse("postgresql://u@h/d?connect_timeout=3&host=/run/pg").shown
    assert StoreUrl.parse(shown).shown == shown


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:secret@h/d",
        "postgresql://u@h/d?password=secret",
        "postgresql://u@h/d?sslkey=k&sslpassword=secret",
    ],
)
def test_a_password_is_used_and_not_shown(text: str) -> None:
    """It goes to libpq alone; from a command line it is refused, without being repeated."""
    url = StoreUrl.parse(text)
    assert "secret" in url.conninfo
    assert "secret" not in url.shown
    with pytest.raises(InvalidValue) as refused:
        StoreUrl.parse(text, with_password=False)
    assert "secret" not in refused.value.message
    assert "PGPASSFILE" in str(refused.value.hint)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:sec/ret@h/d",
        "postgresql://u:sec?ret@h/d",
        "postgresql://u:sec#ret@h/d",
        "postgresql://u:12/ret@h/d",
        "postgresql://u@h/d?password=sec&ret",
        "postgresql://u:sec\u2100ret@h/d",
        "postgresql://u:secret@h:port/d",
        "postgresql://u:sec@ret@h/d",
        "postgresql://u@h/d?password=secret%zz",
        "postgresql://u@h/d?password=sec=ret",
    ],
)
def test_an_unreadable_url_is_not_repeated(text: str) -> None:
    """An unescaped sign parts a password, and each part looks like a host, a port or a parameter."""
    with pytest.raises(InvalidValue, match=r"^the URL of a store cannot be read$") as refused:
        StoreUrl.parse(text)
    assert "%2F" in str(refused.value.hint)


@pytest.mark.parametrize("host", ["h", "h:5432", "a,b:5433", "[::1]:5432", "", "db-1.example.com"])
def test_hosts_with_ports_are_read(host: str) -> None:
    """Of the forms that libpq knows."""
    assert StoreUrl.parse(f"postgresql://u@{host}/d").shown == f"postgresql://u@{host}/d?store=txnctl"


@pytest.mark.parametrize(
    "store", ["", "Bank", "1st", "public", "pg_x", "information_schema", "a-b", "x" * 41, 'a"b']
)
def test_a_name_that_is_no_schema_of_ours_is_refused(store: str) -> None:
    """Before anything reaches the server."""
    with pytest.raises(InvalidValue, match="no name of a store"):
        StoreUrl.parse(f"postgresql://h/d?store={store}")


def test_a_plus_sign_is_a_plus_sign() -> None:
    """As libpq reads parameters: a space is %20."""
    url = StoreUrl.parse("postgresql://h/d?password=a+b%20c&application_name=x+y")
    assert "password=a%2Bb%20c" in url.conninfo
    assert "application_name=x%2By" in url.shown


def test_a_parameter_twice_is_refused() -> None:
    """Which one counts would be a guess."""
    with pytest.raises(InvalidValue, match="twice"):
        StoreUrl.parse("postgresql://h/d?store=a&store=b")
