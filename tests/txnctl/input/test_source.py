"""Source: `txnctl/input/source.py`."""

from __future__ import annotations

import os
from fcntl import F_DUPFD, fcntl
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from typing import Any

import pytest

from tests.txnctl.commands.produce.produce_steps import values
from txnctl.input.source import Source

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestLines:
    """The default input."""

    def test_a_descriptor_may_have_a_large_number(self) -> None:
        """Larger than select() takes, as a process that was handed many files may have."""
        limit, most = getrlimit(RLIMIT_NOFILE)
        setrlimit(RLIMIT_NOFILE, (max(limit, 2048), most))
        reading, writing = os.pipe()
        try:
            with open(fcntl(reading, F_DUPFD, 1024), "rb") as pipe:
                source = Source(pipe.fileno(), None, "a pipe")
                assert source.read(0.01) is None
                os.write(writing, b"a")
                assert source.read(None) == b"a"
        finally:
            os.close(reading)
            os.close(writing)
            setrlimit(RLIMIT_NOFILE, (limit, most))

    def test_a_dash_is_standard_input(self, run: Any, path: Path) -> None:
        """As everywhere."""
        run("produce", "orders", "-", stdin=b"a\n")
        assert values(path) == [b"a"]
