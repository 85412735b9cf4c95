"""Stream: `txnctl/output/stream.py`."""

from __future__ import annotations

import io
import sys

import pytest


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
