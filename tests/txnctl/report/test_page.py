"""The report in a real browser: what it shows, that every label is legible, and that it asks for nothing."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store
from tests.txnctl.stuck_store import EVIL, StuckStore
from txnctl.output.escape import printable
from txnctl.report.page import POLICY

pytestmark = pytest.mark.needs_program("chromium")

Run = Callable[..., Any]

_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
_DARK = "--blink-settings=preferredColorScheme=0"

_MEASURE = """
const told = {labels: [], outside: [], overlaps: [], resources: []};
for (const each of document.querySelectorAll("details")) each.open = true;
told.window = innerWidth;
told.width = document.documentElement.clientWidth;
told.wide = document.documentElement.scrollWidth;
told.ground = getComputedStyle(document.body).backgroundColor;
told.text = document.body.innerText;
for (const svg of document.querySelectorAll("svg[role=img]")) {
  const picture = svg.getBoundingClientRect();
  if (!picture.width) continue;
  const found = [];
  for (const text of svg.querySelectorAll("text")) {
    const box = text.getBoundingClientRect();
    found.push([text.textContent, box]);
    told.labels.push(text.textContent);
    if (box.left < picture.left - 1 || box.right > picture.right + 1 ||
        box.top < picture.top - 1 || box.bottom > picture.bottom + 1) told.outside.push(text.textContent);
  }
  found.forEach(([name, a], at) => found.slice(at + 1).forEach(([other, b]) => {
    if (a.left < b.right && b.left < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom)
      told.overlaps.push([name, other]);
  }));
}
told.resources = performance.getEntriesByType("resource").map(each => each.name);
parent.postMessage(JSON.stringify(told), "*");
"""
_FRAME = """<!DOCTYPE html>
<iframe src="copy.html" style="width: {width}px; height: 900px; border: 0"></iframe>
<pre id="told"></pre>
<script>addEventListener("message", told => document.getElementById("told").textContent = told.data)</script>
"""
"""A window of any width, as that of the browser has a least one."""


def dom(page: Path, *flags: str) -> str:
    """What a page has become in the browser."""
    done = subprocess.run(
        [
            "chromium",
            *_FLAGS,
            f"--user-data-dir={page.parent / 'profile'}",
            *flags,
            "--dump-dom",
            page.as_uri(),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )
    return done.stdout.decode()


def measured(run: Run, store: Path, at: Path, width: int, *flags: str) -> dict[str, Any]:
    """What a copy of the page finds out about itself, by a script that the page itself forbids."""
    text = run("report", "--html", "-", "--store", str(store)).out
    assert text.count(POLICY) == 1
    copy = at / "copy.html"
    copy.write_text(
        text.replace(POLICY, f"{POLICY}; script-src 'unsafe-inline'").replace(
            "</body>", f"<script>{_MEASURE}</script></body>"
        )
    )
    frame = at / "frame.html"
    frame.write_text(_FRAME.format(width=width))
    shown = dom(frame, "--window-size=1400,1000", "--virtual-time-budget=5000", *flags)
    found = re.search(r'<pre id="told">(.*?)</pre>', shown, re.DOTALL)
    assert found is not None
    told: dict[str, Any] = json.loads(unescape(found[1]))
    return told


@pytest.mark.parametrize(
    ("width", "flags"), [(1280, ()), (400, (_DARK,))], ids=["wide and light", "narrow and dark"]
)
def test_what_a_stuck_store_looks_like(
    run: Run, stuck_store: StuckStore, tmp_path: Path, width: int, flags: tuple[str, ...]
) -> None:
    """Every label within its picture and over no other, nothing wider than the window, nothing asked for."""
    told = measured(run, stuck_store.path, tmp_path, width, *flags)
    assert told["outside"] == []
    assert told["overlaps"] == []
    assert told["resources"] == []
    assert told["window"] == width
    assert told["wide"] <= told["width"]
    assert told["ground"] == ("rgb(21, 24, 28)" if flags else "rgb(253, 253, 251)")
    labels = "\n".join(told["labels"])
    for word in (
        str(stuck_store.idle), "ORPHANED", "OVERDUE", "stopped", "maxReadPosition 3:1", "READ_UNCOMMITTED",
        "Key_Shared READ_COMMITTED", "billing", "monitor", "ledger 3", "no-consumer",
    ):  # fmt: skip
        assert word in labels
    for sentence in (
        f"wait behind transaction {stuck_store.idle};",
        f"txnctl --store {stuck_store.path} transactions explain {stuck_store.idle}",
        "ORPHANED: its process is dead, its lock is released",
        printable(EVIL),
    ):
        assert sentence in told["text"]


def test_many_of_everything(run: Run, tmp_path: Path) -> None:
    """Sixty open transactions, forty subscriptions, names in scripts of any width: every label has its place."""
    path = tmp_path / "many.store"
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("orders", ledger_entries_max=7)
        producer = store.create_producer("orders")
        for number in range(40):
            store.admin.subscriptions.create_subscription(
                "orders", f"s{number}-{'x' * number}", initial_position=EARLIEST
            )
        for number in range(60):
            name = ("東京都庁", "مرحبا بالعالم", "👩‍🔬🧪", "ﷺﷺﷺﷺ", "nightly")[number % 5]
            txn = store.begin_transaction(labels={"job": name})
            producer.send(b"half", txn=txn)
            producer.send_batch([b"whole"] * 3)
    for width in (1280, 400):
        told = measured(run, path, tmp_path, width)
        assert (told["outside"], told["overlaps"], told["resources"]) == ([], [], [])
        assert "52 more open transactions" in told["labels"]
        assert told["wide"] <= told["width"]


def test_the_page_itself_runs_no_script(run: Run, stuck_store: StuckStore, tmp_path: Path) -> None:
    """One that was put into it by force does nothing."""
    path = tmp_path / "page.html"
    assert run("report", "--html", str(path), "--store", str(stuck_store.path)).status == 0
    script = "document.body.append('the script ran')"
    for policy, ran in ((f"{POLICY}; script-src 'unsafe-inline'", 2), (POLICY, 1)):
        text = (
            path.read_text().replace(POLICY, policy).replace("</body>", f"<script>{script}</script></body>")
        )
        (tmp_path / "forced.html").write_text(text)
        assert dom(tmp_path / "forced.html").count("the script ran") == ran
