"""The child process of a check: `txnctl/commands/store/verify_child.py`."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from storage.errors import StoreInvalid
from storage.verify.run import FULL
from txnctl.commands.store import verify_child
from txnctl.commands.store.verify_child import Verification


def test_the_child_imports_the_packages_of_its_parent(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check succeeds with an interpreter that ignores editable installations (`-S`)."""
    interpreter = tmp_path / "python"
    interpreter.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    interpreter.chmod(0o700)
    monkeypatch.setenv("PYTHONPATH", sysconfig.get_path("platlib"))
    monkeypatch.setattr(sys, "executable", str(interpreter))
    with Verification(str(path), full=True) as verification:
        assert list(verification.steps()) != []
    assert verification.problems == []
    assert tuple(verification.invariants) == tuple(FULL)


def test_a_damaged_store_is_not_sent_back_to_verify() -> None:
    """Every other command advises to verify; verify itself says what comes after."""
    fields: Any = {
        "code": "corrupt-store",
        "message": "x",
        "hint": "Run `txnctl store verify --full`.",
        "details": {},
    }
    assert str(getattr(verify_child._error(fields), "hint", "")) == verify_child.EVIDENCE
    fields |= {"code": "store-not-found"}
    assert "verify" in str(getattr(verify_child._error(fields), "hint", ""))


@pytest.mark.parametrize(
    ("end", "is_damage"), [("kill -SEGV $$", True), ("kill -KILL $$", False), ("exit 1", False)]
)
def test_only_a_fault_of_memory_is_damage(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, is_damage: bool
) -> None:
    """A child that the kernel kills for want of memory, or that does not start, says nothing of the store."""
    interpreter = tmp_path / "python"
    interpreter.write_text(f"#!/bin/sh\n{end}\n")
    interpreter.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    if is_damage:
        with Verification(str(path), full=True) as verification:
            assert list(verification.steps()) == []
        assert ["reading it is not safe" in problem.message for problem in verification.problems] == [True]
    else:
        with (
            Verification(str(path), full=True) as verification,
            pytest.raises(StoreInvalid, match="did not come to its end"),
        ):
            list(verification.steps())
