"""Figures of the code base that stay within a bound."""

from __future__ import annotations

from tests.project import figures

SEND_MODULES_MAX = 12


def test_one_send_runs_in_few_modules() -> None:
    """Reading one send from the call to the commit takes few files."""
    modules = figures.modules_of_one_send()
    assert len(modules) <= SEND_MODULES_MAX, "\n".join(modules)
