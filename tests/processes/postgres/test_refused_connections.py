"""Connections that are not made: each cause has its error, whatever language the server speaks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store
from storage.errors import (
    InvalidValue,
    NotPermitted,
    ServerUnreachable,
    StoreInvalid,
    StoreNotFound,
)
from tests.not_run import program
from tests.processes.postgres.servers import Server, new_directory

pytestmark = [pytest.mark.needs_program("initdb"), pytest.mark.needs_program("localedef")]


@pytest.fixture(scope="module")
def german() -> Iterator[Server]:
    """A server that speaks German, and asks everyone but its owner for a password."""
    locales = new_directory()
    subprocess.run(
        [program("localedef"), "-i", "de_DE", "-f", "UTF-8", f"{locales}/de_DE.UTF-8"],
        check=False, capture_output=True,
    )  # fmt: skip
    server = Server(
        environment={"LOCPATH": locales},
        settings={"lc_messages": "'de_DE.UTF-8'"},
    )
    server.psql("CREATE DATABASE closed")
    server.psql(
        "REVOKE CONNECT ON DATABASE closed FROM PUBLIC; CREATE ROLE databaseuser;"
        " CREATE ROLE worker LOGIN PASSWORD 'right'; CREATE ROLE narrow LOGIN PASSWORD 'right' CONNECTION LIMIT 1"
    )
    Path(server.data, "pg_hba.conf").write_text("local all postgres trust\nlocal all all scram-sha-256\n")
    server.psql("SELECT pg_reload_conf()")
    Store.create(server.url("bank"), durability="local")
    yield server
    server.remove()


def refusal(server: Server, user: str, database: str = "postgres", more: str = "") -> StoreInvalid:
    """The error of an open."""
    with pytest.raises(StoreInvalid) as caught:
        Store.open(f"postgresql://{user}@/{database}?host={server.directory}&store=bank{more}")
    return caught.value


@pytest.mark.parametrize(
    ("user", "database", "kind", "words"),
    [
        ("postgres", "missing", StoreNotFound, "createdb"),
        ("worker:wrong", "postgres", NotPermitted, "PGPASSFILE"),
        ("worker", "postgres", NotPermitted, "PGPASSFILE"),
        ("missing:right", "postgres", NotPermitted, "role"),
        ("databaseuser:right", "postgres", NotPermitted, "role"),
        ("worker:right", "closed", NotPermitted, "GRANT CONNECT"),
    ],
)
def test_each_refusal_has_its_error(
    german: Server, user: str, database: str, kind: type[StoreInvalid], words: str
) -> None:
    """None of these is worth another try."""
    error = refusal(german, user, database)
    assert type(error) is kind
    assert not error.retryable
    assert words in str(error.hint)
    assert "existiert nicht" in error.message or kind is not StoreNotFound, "the server speaks German"


def test_a_limit_of_connections_may_be_tried_again(german: Server) -> None:
    """Of the role, since a store needs two connections; the hint names both limits."""
    error = refusal(german, "narrow:right")
    assert type(error) is ServerUnreachable
    assert error.retryable
    assert "CONNECTION LIMIT" in str(error.hint)
    assert "max_connections" in str(error.hint)


def test_a_value_that_libpq_does_not_know_is_bad_input(german: Server) -> None:
    """Before anybody is asked."""
    with pytest.raises(InvalidValue, match='sslmode value: "strict"'):
        Store.open(german.url("bank") + "&sslmode=strict")


def test_a_server_that_is_away_may_be_tried_again() -> None:
    """Nobody answered."""
    with pytest.raises(ServerUnreachable) as caught:
        Store.open("postgresql://postgres@127.0.0.1:1/postgres?store=bank")
    assert caught.value.retryable
