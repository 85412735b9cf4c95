"""Names of stores as options of Spark, which everybody sees who sees the job."""

from __future__ import annotations

import pytest

from storage.errors import InvalidValue
from txnctl.spark import options
from txnctl.spark.store_name import shown_name

SECRET = "a-secret"
WITH_PASSWORD = f"postgresql://postgres:{SECRET}@db.example/bank"


def test_a_password_in_the_name_of_the_store_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By each option and by TXNCTL_STORE, for reads and writes; the error has the ways out, and no password."""
    for given in ({"path": WITH_PASSWORD}, {"STORE": WITH_PASSWORD}):
        for parse in (options.topic_read, options.topic_stream, options.write, options.check_store_name):
            with pytest.raises(InvalidValue) as refused:
                parse({"topic": "one", **given})
            assert "has a password" in str(refused.value)
            assert "PGPASSFILE" in str(refused.value.hint)
            assert SECRET not in str(refused.value)
    monkeypatch.setenv("TXNCTL_STORE", WITH_PASSWORD)
    with pytest.raises(InvalidValue, match="has a password"):
        options.topic_read({"topic": "one"})


def test_a_name_is_absolute_and_a_url_in_its_normal_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is made absolute; a URL keeps all but what is added at each connection."""
    monkeypatch.chdir("/")
    assert shown_name("bank.store") == "/bank.store"
    url = "postgresql://spark@db1,db2:5433/bank?sslmode=verify-full&store=bank"
    assert shown_name(url) == url
    with pytest.raises(InvalidValue, match="no name of a store"):
        shown_name("postgresql://db/bank?store=Bank")
