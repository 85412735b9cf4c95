"""Settings: `txnctl/cli/settings.py`."""

from __future__ import annotations

from typing import Any

import pytest

from txnctl.cli import exit_codes
from txnctl.cli.context import Context
from txnctl.cli.declaration import command
from txnctl.cli.decorators import (
    changes_store,
)


class TestWaiting:
    """A wait for the writer gate names the holder, ends at its time, and can be interrupted."""

    @pytest.mark.usefixtures("holder")
    def test_the_timeout_comes_from_the_environment_too(
        self, run: Any, add: Any, store_path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """TXNCTL_LOCK_TIMEOUT=0s does not wait at all, and says nothing of waiting."""

        @command
        @changes_store()
        def make(context: Context) -> None:
            """Make."""
            context.store.create_topic("other")

        add(make)
        monkeypatch.setenv("TXNCTL_LOCK_TIMEOUT", "0s")
        outcome = run("probe", "--store", store_path)
        assert outcome.status == exit_codes.STORE_BUSY
        assert "waiting" not in outcome.err
        monkeypatch.setenv("TXNCTL_LOCK_TIMEOUT", "soon")
        assert "TXNCTL_LOCK_TIMEOUT: 'soon' is not a duration" in run("probe", "--store", store_path).err
