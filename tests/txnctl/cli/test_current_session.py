"""The session of a command line: the one that is named, else that of the environment, on its topic alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import AccessMode, Store
from storage.errors import InvalidValue, ProducerFenced
from tests.row_json import row_json
from txnctl.cli.current_session import named_or_current, named_or_in_file, of_environment, of_environment_on


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with two topics."""
    Store.create(tmp_path / "s")
    with Store.open(tmp_path / "s") as opened:
        opened.create_topic("orders")
        opened.create_topic("other")
        yield opened


@pytest.fixture
def token(store: Store, monkeypatch: pytest.MonkeyPatch) -> str:
    """A session on `orders`, in the environment."""
    session = str(row_json(store.open_session("orders", access_mode=AccessMode.EXCLUSIVE))["session"])
    monkeypatch.setenv("TXNCTL_SESSION", session)
    return session


def test_the_named_one_comes_first(token: str) -> None:
    """Then that of the environment."""
    assert named_or_current("named") == "named"
    assert named_or_current(None) == token == of_environment()


def test_a_file_holds_a_token(token: str, tmp_path: Path) -> None:
    """With or without a line end; the token of an option excludes the file, and what is no token is not repeated."""
    file = tmp_path / "session"
    for content in (token, f"{token}\n", f" {token}\r\n\n"):
        file.write_text(content)
        assert named_or_in_file(None, str(file)) == token
    assert named_or_in_file("named", None) == "named"
    assert named_or_in_file(None, None) is None
    with pytest.raises(InvalidValue, match="--resume and --resume-file both"):
        named_or_in_file("named", str(file), option="--resume")
    for secret in (b"hunter2", b"", b"\xff", f"{token} {token}".encode(), b"x" * 100_000):
        file.write_bytes(secret)
        with pytest.raises(InvalidValue, match="holds no token of a session") as refused:
            named_or_in_file(None, str(file))
        assert "hunter2" not in str(refused.value)
    with pytest.raises(InvalidValue, match="No such file"):
        named_or_in_file(None, str(tmp_path / "missing"))


def test_without_either_it_is_bad_input() -> None:
    """The hint says how to get one."""
    assert of_environment() is None
    with pytest.raises(InvalidValue, match="TXNCTL_SESSION is not set") as refused:
        named_or_current(None)
    assert refused.value.hint is not None
    assert "producers open" in refused.value.hint


def test_nonsense_is_told_with_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also as the words of the exception."""
    monkeypatch.setenv("TXNCTL_SESSION", "nonsense")
    with pytest.raises(InvalidValue, match=r"^TXNCTL_SESSION: "):
        of_environment()


def test_it_counts_on_its_topic_alone(store: Store, token: str) -> None:
    """On another topic a command produces as if there were none."""
    assert of_environment_on(store, "orders") == token
    assert of_environment_on(store, "other") is None


def test_of_another_store_it_counts_nowhere(tmp_path: Path, token: str) -> None:
    """Though that has a topic of the same number."""
    Store.create(tmp_path / "t")
    with Store.open(tmp_path / "t") as elsewhere:
        elsewhere.create_topic("orders")
        assert of_environment_on(elsewhere, "orders") is None
    assert token


def test_a_topic_that_was_deleted_is_an_error(store: Store, token: str) -> None:
    """Whatever topic is named: this may be it, made anew."""
    store.admin.topics.delete_topic("orders", force=True)
    store.create_topic("orders")
    for topic in ("orders", "other"):
        with pytest.raises(ProducerFenced, match="was deleted"):
            of_environment_on(store, topic)
    assert token
