"""The child process of a check: `txnctl/commands/store/verify_child.py`."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from storage.verify.run import FULL
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
