"""A few failovers under clients; `make failovers` has the long form."""

from __future__ import annotations

import pytest

from tests.faults import failovers


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_or_doubled(capsys: pytest.CaptureFixture[str]) -> None:
    """Each message that a client was told of is there once and in order, and the full verify is clean."""
    assert failovers.main(rounds=3) == 0, capsys.readouterr().out
