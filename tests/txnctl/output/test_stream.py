"""Stream: `txnctl/output/stream.py`."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from storage import Store


class TestStream:
    """Standard output as bytes."""

    def test_text_is_utf8_whatever_the_locale(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """And file names that are not text leave as they came."""
        from txnctl.output.stream import OutputStream

        held = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(held, "ascii"))
        stream = OutputStream()
        stream.write("č")
        stream.write(b"\xff".decode("utf-8", "surrogateescape"))
        stream.write_bytes(b"\x00")
        stream.flush()
        assert held.getvalue() == b"\xc4\x8d\xff\x00"
        assert stream.terminal is False

    def test_a_closed_standard_output_takes_everything(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`>&-` is a wish to see nothing."""
        from txnctl.output.stream import OutputStream

        monkeypatch.setattr(sys, "stdout", None)
        stream = OutputStream()
        stream.write("x")
        stream.flush()
        assert stream.terminal is False


class TestClosedOutput:
    """Commands whose result comes only once, in a process of their own with no standard output."""

    def closed(self, path: Path, *words: str) -> tuple[int, str]:
        done = subprocess.run(
            [
                "/bin/sh",
                "-c",
                'exec "$@" >&-',
                "sh",
                sys.executable,
                "-m",
                "txnctl",
                *words,
                "--store",
                str(path),
            ],
            check=False,
            stderr=subprocess.PIPE,
        )
        return done.returncode, done.stderr.decode()

    @pytest.mark.parametrize(
        "words",
        [
            ("consume", "t", "-s", "s", "--from", "earliest"),
            ("consume", "t", "-s", "s", "--from", "earliest", "-o", "json"),
            ("transactions", "begin"),
            ("producers", "open", "t"),
        ],
    )
    def test_what_would_be_lost_is_refused_and_nothing_changes(
        self, tmp_path: Path, words: tuple[str, ...]
    ) -> None:
        """Neither an acknowledgement nor a subscription, a transaction or a session."""
        Store.create(tmp_path / "s")
        with Store.open(tmp_path / "s") as store:
            store.create_topic("t")
            store.create_producer("t").send(b"x")
            commits = store.reports.store_info().commits
        status, complaint = self.closed(tmp_path / "s", *words)
        assert status == 6
        assert "standard output is closed: " in complaint
        with Store.open(tmp_path / "s", read_only=True) as store:
            assert store.reports.store_info().commits == commits

    @pytest.mark.parametrize(
        "words",
        [("consume", "t"), ("consume", "t", "-s", "s", "--exec", "true"), ("produce", "t", "-m", "y")],
    )
    def test_other_commands_go_on_unseen(self, tmp_path: Path, words: tuple[str, ...]) -> None:
        """Their result is elsewhere, or comes again."""
        Store.create(tmp_path / "s")
        with Store.open(tmp_path / "s") as store:
            store.create_topic("t")
        assert self.closed(tmp_path / "s", *words)[0] == 0
