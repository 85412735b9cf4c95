"""The `sqlite3` program: `.import` of a file of lines, and `-json` of a table.

The journal is the program's default, a rollback journal: as durable as a WAL, and for one large import the faster one.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

HOW_TO_GET_IT = "the sqlite3 program is not on PATH (on Debian: apt install sqlite3)"


def program() -> str | None:
    """Return the path of the program, if installed."""
    return shutil.which("sqlite3")


def shell_version(sqlite3: str) -> str:
    """`3.40.1 2022-12-28 ...` is 3.40.1."""
    said = subprocess.run([sqlite3, "--version"], check=True, capture_output=True, text=True).stdout
    return said.split()[0]


def import_command(sqlite3: str, database: Path, lines: Path) -> list[str]:
    """Return a command that creates the table and inserts a row for each line, in one durable commit."""
    return [
        sqlite3,
        "-cmd", "pragma synchronous = full",
        "-cmd", "create table log (value text not null)",
        "-cmd", ".mode csv",
        str(database),
        f'.import "{lines}" log',
    ]  # fmt: skip


def json_command(sqlite3: str, database: Path) -> list[str]:
    """Return a command that prints every row with its number: the least that a consumer of a log needs."""
    return [sqlite3, "-json", "-readonly", str(database), "select rowid as id, value from log order by rowid"]
