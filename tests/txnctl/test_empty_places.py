"""An empty text where a command line names a place or a command: mostly a variable that is not set."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import Store
from storage.errors import InvalidValue
from tests.txnctl.conftest import Outcome

LINES = [
    ("store", "restore", "a", "--to", ""), ("store", "backup", ""), ("store", "copy", "a", ""), ("store", "copy", "", "a"),
    ("store", "init", ""), ("store", "init", "--store", ""), ("--store", "", "topics", "list"),
    ("pipeline", "export", "t", "", "--format", "json"), ("pipeline", "offload", "t", ""), ("topics", "trim", "t", "--offloaded", ""),
    ("produce", "t", ""), ("tables", "import", "a", ""), ("demo", "--store", ""), ("report", "--html", ""),
    ("consume", "t", "-s", "s", "--exec", ""), ("consume", "t", "-s", "s", "--exec", " \t"),
]  # fmt: skip


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_an_empty_place_is_refused(
    run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Nothing is made, neither here nor at the default, and no message is done."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    outcome = run(*words)
    assert outcome.status == 2, outcome.err
    assert "is empty" in outcome.err
    assert os.listdir(tmp_path) == []


def test_an_empty_path_is_refused_by_the_api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a name of a store at each door."""
    monkeypatch.chdir(tmp_path)
    for call in (lambda: Store.create(""), lambda: Store.open(""), lambda: Store.restore("a", "")):
        with pytest.raises(InvalidValue, match="is empty"):
            call()
    assert os.listdir(tmp_path) == []
