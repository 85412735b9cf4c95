"""Names of stores: the form of a URL, and texts without passwords."""

from __future__ import annotations

import pytest

from storage.values.store_name import is_url, without_passwords


def test_a_url_of_postgresql_is_no_path() -> None:
    """Both schemes of libpq; a directory may have any further name."""
    assert is_url("postgresql:///bank")
    assert is_url("postgres://h/d")
    assert not is_url("bank.store")
    assert not is_url("./postgresql://h")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot use postgresql://u:secret@h/d.", "cannot use postgresql://u@h/d."),
        ("'postgres://u:a@b@h/d?store=x'", "'postgres://u@h/d?store=x'"),
        ("postgresql:///d?password=secret&store=x", "postgresql:///d?password=...&store=x"),
        ("postgresql:///d?store=x&sslpassword=secret", "postgresql:///d?store=x&sslpassword=..."),
        ("postgresql://u@h:5432/d, s3://a:b@c", "postgresql://u@h:5432/d, s3://a:b@c"),
        ("no URL", "no URL"),
    ],
)
def test_passwords_of_urls_are_left_out(text: str, shown: str) -> None:
    """What is shown still names the store."""
    assert without_passwords(text) == shown
