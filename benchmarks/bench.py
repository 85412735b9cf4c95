"""The context of a row: directory, sizes, and notes for the reader."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.sizes import Sizes


class Bench:
    """A run. `notes` are printed at once and saved: skipped rows and contenders, and why."""

    def __init__(self, directory: Path, sizes: Sizes) -> None:
        self.directory = directory
        self.sizes = sizes
        self.notes: list[str] = []
        self.versions: dict[str, str] = {}

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)
            print(f"note: {text}", file=sys.stderr, flush=True)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Make a fresh directory on the measured disk, removed afterwards."""
        with tempfile.TemporaryDirectory(dir=self.directory) as name:
            yield Path(name)
