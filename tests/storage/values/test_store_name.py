"""Names of stores: the form of a URL, and texts without passwords."""

from __future__ import annotations

import pytest

from storage.errors import InvalidValue
from storage.values.store_name import is_url, without_passwords


def test_a_url_of_postgresql_is_no_path() -> None:
    """Both schemes of libpq; a directory may have any further name."""
    assert is_url("postgresql:///bank")
    assert is_url("postgres://h/d")
    assert not is_url("bank.store")
    assert not is_url("./postgresql://h")
    assert not is_url("./a:b@h/d")
    assert not is_url("/srv/host=bank")
    assert not is_url("stores/bank:1")


def test_no_name_is_no_path() -> None:
    """It would mean the current directory."""
    with pytest.raises(InvalidValue, match="the path is empty"):
        is_url("")


@pytest.mark.parametrize(
    "name",
    [
        "postgresql+psycopg2://app:secret@h/d", "jdbc:postgresql://h/d?password=secret", "POSTGRESQL://app:secret@h/d",
        "postgresql:/h/d", "postgresql:app:secret@h", " postgresql://app:secret@h/d", "'postgresql://app:secret@h/d'",
        '"postgres://app:secret@h/d"', "host=h password=secret", "password = secret dbname=d", "app:secret@h/d",
        "mysql://app:secret@h/d", "file:///srv/secret", "\tpostgresql://app:secret@h/d",
    ],
)  # fmt: skip
def test_what_looks_like_a_url_is_no_path(name: str) -> None:
    """Refused without the text, which may hold a password, and with the form that is meant."""
    with pytest.raises(InvalidValue) as refused:
        is_url(name)
    assert "secret" not in refused.value.message
    assert "postgresql://user@host/database?store=bank" in str(refused.value.hint)
    assert refused.value.details["parameter"] == "password"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot use postgresql://u:secret@h/d.", "cannot use postgresql://u@h/d."),
        ("'postgres://u:a@b@h/d?store=x'", "'postgres://u@h/d?store=x'"),
        ("postgresql:///d?password=secret&store=x", "postgresql:///d?password=...&store=x"),
        ("postgresql:///d?store=x&sslpassword=secret", "postgresql:///d?store=x&sslpassword=..."),
        ("postgresql://u@h:5432/d, s3://a:b@c", "postgresql://u@h:5432/d, s3://a:b@c"),
        ("'POSTGRESQL+psycopg2://u:secret@h/d'", "'POSTGRESQL+psycopg2://u@h/d'"),
        ("'host=h password=secret dbname=d'", "'host=h password=... dbname=d'"),
        ("no URL", "no URL"),
    ],
)
def test_passwords_of_urls_are_left_out(text: str, shown: str) -> None:
    """What is shown still names the store."""
    assert without_passwords(text) == shown
