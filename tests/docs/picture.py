"""The picture of the README: the report of the demo's store with a transfer left open, as Chromium draws it.

python -m tests.docs.picture docs/images/report.png
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
WIDTH, HEIGHT = 1200, 1140
PAYMENTS = 700
SHOWN_PATH = "/srv/bank.store"

_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip


def make_picture(directory: Path, picture: Path) -> None:
    """Play the demo in `directory`, leave a transfer open, and write the report's first screen as a PNG."""
    store = directory / "bank.store"
    _txnctl("demo", "--keep-store", "--store", str(store), "--accounts", "20")
    _leave_transfer_open(store)
    page = directory / "report.html"
    text = _txnctl("report", "--html", "-", "--store", str(store))
    text = text.replace(f" --store {store}", "").replace(str(store), SHOWN_PATH)
    page.write_text(text, encoding="utf-8")
    subprocess.run(
        [
            "chromium", *_FLAGS, f"--user-data-dir={directory / 'profile'}", f"--window-size={WIDTH},{HEIGHT}",
            f"--screenshot={picture}", page.as_uri(),
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=120,
    )  # fmt: skip


def _leave_transfer_open(store: Path) -> None:
    topic = "requests"
    where = ("--store", str(store))
    txn = _txnctl("transactions", "begin", "--label", "job=transfer", *where).strip()
    _txnctl("produce", topic, "--txn", txn, "-m", "withdraw B1 100", *where)
    lines = "".join(f"deposit B{number} 20\n" for number in range(PAYMENTS))
    _txnctl("produce", topic, "--batch", "2", *where, stdin=lines)


def _txnctl(*words: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "txnctl", *words],
        input=stdin, capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, "COLUMNS": "100"},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"txnctl {' '.join(words)}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        make_picture(Path(directory), Path(sys.argv[1]).resolve())
