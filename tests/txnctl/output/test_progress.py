"""ProgressLine: `txnctl/output/progress.py`."""

from __future__ import annotations

import pytest

from txnctl.output.progress import ProgressLine


class TestProgress:
    """A line on a terminal, nothing anywhere else."""

    def test_silent_where_nobody_watches(self, capsys: pytest.CaptureFixture[str]) -> None:
        """No bar when redirected."""
        with ProgressLine("Verify", 10, "pages", watched=False) as bar:
            for _ in range(10):
                bar.advance()
        assert capsys.readouterr() == ("", "")

    def test_silent_in_the_first_second(self, capsys: pytest.CaptureFixture[str]) -> None:
        """What is done at once needs no bar."""
        with ProgressLine("Verify", 10, "pages", watched=True) as bar:
            bar.advance(10)
        assert capsys.readouterr() == ("", "")

    def test_drawn_after_a_second_and_wiped_at_the_end(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On standard error alone."""
        now = [0.0]
        monkeypatch.setattr("txnctl.output.progress.monotonic", lambda: now[0])
        with ProgressLine("Verify", 2_900, "pages", watched=True) as bar:
            now[0] = 10.0
            bar.advance(1_200)
        out, err = capsys.readouterr()
        assert out == ""
        assert err == "\rVerify  41 %  1,200 of 2,900 pages  120/s  14s left\x1b[K\r\x1b[K"

    def test_without_a_total(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It says what is done and how fast."""
        monkeypatch.setattr("txnctl.output.progress.monotonic", lambda: 0.0)
        bar = ProgressLine("Produce", None, "messages", watched=False)
        bar.advance(500)
        assert bar.line(2.0) == "Produce  500 messages  250/s"
