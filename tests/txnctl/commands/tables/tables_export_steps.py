"""Steps that the tests of tables export share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from storage import Store


def rows(path: Path, table: str = "accounts") -> dict[bytes, bytes]:
    """What a table holds."""
    with Store.open(path, read_only=True) as store:
        return {row.key: row.value for row in store.table(table).scan()}


def started(*words: str, **streams: Any) -> subprocess.Popen[bytes]:
    """`txnctl tables` with these words, its streams pipes unless said otherwise."""
    given = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | streams
    return subprocess.Popen([sys.executable, "-m", "txnctl", "tables", *words], **given)
