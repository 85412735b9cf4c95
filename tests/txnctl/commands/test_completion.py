"""`txnctl completion`: the script of each shell is printed as it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("shell", "names"), [("bash", "txnctl.bash"), ("zsh", "_txnctl"), ("fish", "txnctl.fish")]
)
def test_it_prints_the_script_of_a_shell(run: Any, shell: str, names: str) -> None:
    """The same that an installation brings along."""
    outcome = run("completion", shell)
    assert outcome.status == 0
    installed = [path for path in (ROOT / "completions").rglob("*") if path.name == names]
    assert [path.read_text() for path in installed[:1]] == [outcome.out]


def test_an_unknown_shell_is_bad_input(run: Any) -> None:
    """The error names those there are."""
    outcome = run("completion", "tcsh")
    assert outcome.status == 2
    assert "fish" in outcome.err
