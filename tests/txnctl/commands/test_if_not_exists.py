"""`--if-not-exists` of every command that creates, and `--missing-ok` of every command that deletes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("path")

CREATES = [
    ("topics", "create", "new"),
    ("tables", "create", "new"),
    ("subscriptions", "create", "orders", "new"),
]
DELETES = [
    (("topics", "delete", "none"), "there is no topic none"),
    (("tables", "delete", "none"), "there is no table none"),
    (("subscriptions", "delete", "orders", "none"), "no subscription none"),
    (("subscriptions", "delete", "none", "none"), "there is no topic none"),
]
TOPICS = ("orders",)


@pytest.mark.parametrize("words", CREATES, ids=lambda words: words[0])
def test_creating_twice(run: Any, words: tuple[str, ...]) -> None:
    """The first creates, the second finds, and both name the same object; without the option the second is refused."""
    first = run(*words, "--if-not-exists", "-o", "json").json
    second = run(*words, "--if-not-exists", "-o", "json").json
    assert (first.pop("created"), second.pop("created")) == (True, False)
    assert first == second
    outcome = run(*words)
    assert outcome.status == 4
    assert "--if-not-exists" in outcome.err
    assert "exists already" in run(*words, "--if-not-exists").out


def test_a_store_twice(run: Any, tmp_path: Path) -> None:
    """A store is taken as it is; anything else at the path is refused."""
    where = str(tmp_path / "new.store")
    first = run("store", "init", where, "--if-not-exists", "-o", "json").json
    second = run("store", "init", where, "--if-not-exists", "-o", "json").json
    assert (first["created"], second["created"]) == (True, False)
    assert first["storeId"] == second["storeId"]
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").write_text("x")
    assert run("store", "init", str(tmp_path / "letters"), "--if-not-exists").status == 6


@pytest.mark.parametrize(
    ("existing", "given", "difference"),
    [
        ((), ("--ledger-entries", "10"), "--ledger-entries is 50000, not 10"),
        (("--ledger-bytes", "1M"), ("--ledger-bytes", "2M"), "--ledger-bytes is 1048576, not 2097152"),
        (("--ledger-age", "1h"), ("--ledger-age", "2h"), "--ledger-age is 3600000, not 7200000"),
    ],
)
def test_a_topic_that_differs(
    run: Any, existing: tuple[str, ...], given: tuple[str, ...], difference: str
) -> None:
    """A difference in an option that is given is a conflict; options left out are not compared."""
    run("topics", "create", "new", *existing)
    outcome = run("topics", "create", "new", *given, "--if-not-exists")
    assert outcome.status == 4
    assert f"topic new exists, and its {difference}" in outcome.err
    assert run("topics", "create", "new", *existing, "--if-not-exists").status == 0
    assert run("topics", "create", "new", "--if-not-exists").status == 0


@pytest.mark.parametrize(
    ("given", "difference"),
    [
        (("--subscription-type", "exclusive"), "--subscription-type is Shared, not Exclusive"),
        (
            ("--isolation-level", "read-uncommitted"),
            "--isolation-level is READ_COMMITTED, not READ_UNCOMMITTED",
        ),
        (("--on-open", "block"), "--on-open is skip, not block"),
        (("--max-redeliver-count", "4"), "--max-redeliver-count is 3, not 4"),
        (("--dead-letter-topic", "other"), "--dead-letter-topic is letters, not other"),
    ],
)
def test_a_subscription_that_differs(run: Any, given: tuple[str, ...], difference: str) -> None:
    """Type, level, on-open and dead-letter rule; the same words again are success."""
    words = ("subscriptions", "create", "orders", "new")
    made = ("--subscription-type", "shared", "--on-open", "skip", "--max-redeliver-count", "3")
    run(*words, *made, "--dead-letter-topic", "letters")
    outcome = run(*words, *given, "--if-not-exists")
    assert outcome.status == 4
    assert difference in outcome.err
    assert (
        run(*words, *made, "--dead-letter-topic", "letters", "--if-not-exists", "--from", "earliest").status
        == 0
    )


@pytest.mark.parametrize(("words", "said"), DELETES, ids=[" ".join(words) for words, _ in DELETES])
def test_deleting_nothing(run: Any, words: tuple[str, ...], said: str) -> None:
    """Success with a note, and null as JSON; without the option it is not found."""
    assert run(*words, "--yes").status == 3
    outcome = run(*words, "--yes", "--missing-ok")
    assert (outcome.status, outcome.out) == (0, "")
    assert said in outcome.err
    assert run(*words, "--yes", "--missing-ok", "--dry-run").status == 0
    outcome = run(*words, "--yes", "--missing-ok", "-o", "json")
    assert (outcome.status, outcome.json) == (0, None)


def test_deleting_something(run: Any) -> None:
    """An object that is there is deleted as without the option."""
    assert run("topics", "delete", "orders", "--yes", "--missing-ok", "-o", "json").json["topic"]
    assert run("topics", "list", "-o", "name").out == ""


def test_every_create_and_delete_has_its_option() -> None:
    """Mechanically, over all commands."""
    from txnctl.generate.tree import pages

    wanted = {"create": "--if-not-exists", "init": "--if-not-exists", "delete": "--missing-ok"}
    found = [page for page in pages() if page.path[-1] in wanted]
    assert len(found) == 7
    for page in found:
        options = {name for parameter in page.command.params for name in parameter.opts}
        assert wanted[page.path[-1]] in options, page.title
