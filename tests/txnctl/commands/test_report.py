"""`txnctl report`."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from xml.etree.ElementTree import Element

import fastjsonschema
import pytest

from storage import Store
from storage.reports.conflict_counts import ConflictCount
from tests.txnctl.output.test_json_schema import DRAFT_07
from tests.txnctl.report_steps import Run, table, tree, words
from tests.txnctl.stuck_store import CHECKOUT, EVIL, StuckStore
from txnctl.output.escape import printable
from txnctl.output.human import sentence
from txnctl.report.page import PAGE_BYTES_MAX, POLICY, page
from txnctl.report.style import STYLE


def contents(path: Path) -> dict[str, bytes]:
    """Every file of a store, but for the one in which LMDB notes who reads."""
    return {each.name: each.read_bytes() for each in path.iterdir() if each.name != "lock.mdb"}


def luminance(colour: str) -> float:
    """How bright a colour is, as WCAG 2 reckons it."""
    digits = colour.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(each * 2 for each in digits)
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


class TestPage:
    """What is on it."""

    def test_what_is_wrong_comes_first_as_doctor_says_it(self, run: Run, report_page: Element) -> None:
        """Every finding, word for word but for the keys, with the command to type; a command is an element."""
        findings = run("doctor", "-o", "json").json["findings"]
        for each in findings:
            each["what"] = each["what"].replace(" (SECRET)", "")
        shown = [words(each) for each in report_page.iter("article") if "finding" in each.get("class", "")]
        assert len(findings) == len(shown)
        for each, text in zip(findings, shown, strict=True):
            assert text.startswith(f"{each['severity']} {sentence(each['what'])} Next: {each['command']}")
            plain, *commands = each["why"].split("`")
            assert plain + "".join(commands) in text
            assert {*commands[::2]} <= {words(code) for code in report_page.iter("code")}
        assert {each["code"] for each in findings} >= {"late-transactions", "blocked", "owner-stopped"}
        assert next(report_page.iter("h2")).get("id") == "summary"

    def test_the_verdict_is_that_of_doctor(self, run: Run, report_page: Element) -> None:
        """In the same words, with the same count."""
        (shown,) = [words(each) for each in report_page.iter("span") if "verdict" in each.get("class", "")]
        assert shown.startswith("WARNING: ")
        assert f" {shown} " in run("doctor").out.splitlines()[0]

    def test_what_only_informs_is_a_note(self, run: Run, unused_store: Path) -> None:
        """Messages that nobody is there for: the store is ok, on the page as on the terminal."""
        with Store.open(unused_store) as store:
            store.create_topic("orders")
            store.admin.subscriptions.create_subscription("orders", "billing")
            store.create_producer("orders").send(b"one")
        found = tree(run("report", "--html", "-").out)
        assert next(words(each) for each in found.iter("span")) == "ok, 1 note"
        assert "ok, 1 note" in run("doctor").out.splitlines()[0]

    def test_an_empty_store(self, run: Run, unused_store: Path) -> None:
        """Says of each part that there is nothing."""
        found = words(tree(run("report", "--html", "-").out))
        for sentence_ in ("Nothing is wrong.", "There are no topics.", "No transaction is open."):
            assert sentence_ in found

    def test_limited_to_topics(self, run: Run, report_page: Element) -> None:
        """Their subscriptions and transactions alone; findings stay those of the whole store."""
        found = tree(run("report", "--html", "-", "--topic", "payments", "--topic", "quiet").out)
        assert [row["TOPIC"] for row in table(found, "All topics")] == ["payments", "quiet"]
        assert "Limited to topics: payments, quiet." in words(found)
        assert "No transaction is open." not in words(report_page)
        assert "No transaction is open." in words(found)
        assert run("report", "--html", "-", "--topic", "nowhere").status == 3


class TestHandedOn:
    """It goes into tickets and mails."""

    def test_it_asks_for_nothing_and_runs_nothing(self, report_text: str, report_page: Element) -> None:
        """No address, no script, no handler; a policy that forbids them, and links within the page alone."""
        for word in ("http:", "https:", "url(", "@import", "src="):
            assert word not in report_text
        policies = [each.get("content") for each in report_page.iter("meta") if each.get("http-equiv")]
        assert policies == [POLICY] == ["default-src 'none'; style-src 'unsafe-inline'"]
        places = {each.get("id") for each in report_page.iter()}
        for each in report_page.iter():
            assert each.tag not in ("script", "link", "img", "iframe", "object", "embed", "form", "base")
            assert not [name for name in each.attrib if name.startswith("on")]
            if each.get("href") is not None:
                assert str(each.get("href"))[1:] in places

    def test_every_name_of_a_place_is_there_once(self, report_page: Element) -> None:
        """Links and labels mean one thing."""
        ids = [each.get("id") for each in report_page.iter() if each.get("id")]
        assert len(ids) == len(set(ids))

    def test_foreign_text_is_text(self, report_text: str, report_page: Element) -> None:
        """Markup in labels, reasons and names of programs is shown; what would drive a terminal is written out."""
        assert printable(EVIL) in words(report_page)
        assert all(char.isprintable() or char == "\n" for char in report_text)
        assert report_text.count("<style>") == report_text.count("</style>") == 1
        assert "<!--" not in report_text.replace("&lt;!--", "")

    def test_neither_values_nor_keys(self, report_text: str) -> None:
        """Whatever is stored."""
        assert "SECRET" not in report_text

    def test_keys_are_said_to_be_left_out(self, report_page: Element, stuck_store: StuckStore) -> None:
        """Where they would stand, with the command that tells them: at the tables, and at who holds some."""
        (tables,) = [each for each in report_page.iter("section") if each.get("aria-labelledby") == "tables"]
        (holder,) = [
            each
            for each in report_page.iter("details")
            if each.get("id") == f"txn-0-{stuck_store.idle.least}"
        ]
        assert "Keys are not on this page: txnctl tables intents TABLE" in words(tables)
        assert "Keys are not on this page: txnctl tables intents balances" in words(holder)

    def test_the_key_of_a_conflict_is_said_to_be_left_out(self, run: Run, unused_store: Path) -> None:
        """The command that tells it stands beside the conflicts."""
        with Store.open(unused_store) as store:
            store.create_table("accounts")
        txn = run("transactions", "begin").out.strip()
        run("tables", "put", "accounts", "SECRET", "1", "--txn", txn)
        run("tables", "put", "accounts", "SECRET", "2")
        out = run("report", "--html", "-").out
        (conflict,) = table(tree(out), "Conflicts")
        assert (conflict["TABLE"], conflict["LOST"], conflict["KEYS"]) == ("accounts", "1", "1")
        assert "Keys are not on this page: txnctl tables history" in words(tree(out))
        assert "SECRET" not in out

    def test_it_can_be_searched_line_by_line(self, report_text: str, report_page: Element) -> None:
        """A line has one row of a table at most, or one item, or one shape: what grep finds is what was asked for."""
        lines = report_text.splitlines()
        for element in ("tr", "li", "rect", "line", "polygon", "text", "article", "section", "p"):
            ends = [each for each in lines if re.search(rf"</{element}>|<{element} [^>]*/>", each)]
            assert len(ends) == len(list(report_page.iter(element))), element
        (row,) = [each for each in lines if "<tr>" in each and ">balances<" in each and '"KEYS"' in each]
        assert row.count("<td") == len(table(report_page, "Tables")[0])

    def test_the_store_is_only_read(self, run: Run, report_text: str, stuck_store: StuckStore) -> None:
        """Byte by byte."""
        before = contents(stuck_store.path)
        assert run("report", "--html", "-").status == 0
        assert contents(stuck_store.path) == before


class TestSize:
    """It is attached to mails."""

    def test_a_page_has_a_bound(self, stuck_store: StuckStore) -> None:
        """Thousands of topics, transactions, findings, tables and producers under long names: each kind has its room."""
        with Store.open(stuck_store.path, read_only=True) as store:
            data = store.reports.store_report()
        (orders,) = [model for model in data.timelines if model.name == "orders"]
        name, many = EVIL * 6, 2000
        facts = data.overview.facts
        overview = data.overview._replace(
            findings=data.overview.findings * 300, facts=facts._replace(tables=facts.tables * many)
        )
        monster = data._replace(
            overview=overview,
            timelines=[
                orders._replace(name=f"{name}{number}", topic=f"{name}{number}") for number in range(many)
            ],
            open_transactions=data.open_transactions * 100,
            producer_sessions=[row._replace(name=name) for row in data.producer_sessions] * many,
            conflict_counts=[ConflictCount(name, "push", name, name, 1, 1, 1, 1)] * many,
        )
        text = page(monster, "0", ())
        assert PAGE_BYTES_MAX // 4 < len(text.encode()) < PAGE_BYTES_MAX
        for command in ("topics list", "subscriptions list", "producers list", "tables list", "doctor"):
            assert re.search(rf"[0-9,]+ more: <code>txnctl {command}</code>", text), command


class TestJson:
    """The data of the page."""

    def test_it_fits_its_schema_and_has_no_content(self, run: Run, report_page: Element) -> None:
        """The rows that the page shows, without values or keys; a page and data at once are refused."""
        outcome = run("report", "-o", "json")
        page_schema = run("report", "--json-schema").json
        fastjsonschema.compile({**page_schema, "$schema": DRAFT_07})(outcome.json)
        assert "SECRET" not in outcome.out
        assert outcome.json["verdict"] == "warning"
        assert [row["name"] for row in outcome.json["timelines"]] == ["orders", "payments", "quiet"]
        assert [row["txnId"] for row in outcome.json["openTransactions"]] == [
            row["TXN"] for row in table(report_page, "Open transactions")
        ]
        assert run("report", "-o", "json", "--html", "-").status == 2
        assert "--html FILE is missing" in run("report").err

    def test_no_variable_makes_the_page_data(
        self, run: Run, unused_store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`TXNCTL_OUTPUT` does not count."""
        monkeypatch.setenv("TXNCTL_OUTPUT", "json")
        assert run("report", "--html", "-").out.startswith("<!DOCTYPE html>")


class TestFile:
    """Where it goes."""

    def test_a_file_of_its_writer_alone(self, run: Run, unused_store: Path, tmp_path: Path) -> None:
        """Standard output has nothing; a note names the file and its size."""
        path = tmp_path / "incident.html"
        outcome = run("report", "--html", str(path))
        assert (outcome.status, outcome.out) == (0, "")
        assert re.fullmatch(rf"txnctl: wrote {re.escape(str(path))}, [0-9.]+ KiB\n", outcome.err)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert "Nothing is wrong." in words(tree(path.read_text()))

    def test_what_is_there_is_replaced(self, run: Run, unused_store: Path, tmp_path: Path) -> None:
        """Also behind a symbolic link, which stays one."""
        target, link = tmp_path / "real.html", tmp_path / "link.html"
        target.write_text("old")
        target.chmod(0o644)
        link.symlink_to(target)
        assert run("report", "--html", str(link)).status == 0
        assert link.is_symlink()
        assert target.read_text().startswith("<!DOCTYPE html>")
        assert stat.S_IMODE(target.stat().st_mode) == 0o600

    def test_never_into_the_store(self, run: Run, unused_store: Path) -> None:
        """Replacing its data would be the end of it."""
        before = contents(unused_store)
        outcome = run("report", "--html", str(unused_store / "data.mdb"))
        assert (outcome.status, outcome.out) == (2, "")
        assert "is inside the store" in outcome.err
        assert contents(unused_store) == before

    def test_a_place_where_nothing_can_be(self, run: Run, unused_store: Path, tmp_path: Path) -> None:
        """A directory, or one that is not there: exit code 2, and nothing is left behind."""
        before = sorted(tmp_path.iterdir())
        assert run("report", "--html", str(tmp_path)).status == 2
        outcome = run("report", "--html", str(tmp_path / "missing" / "x.html"))
        assert outcome.status == 2
        assert "No such file or directory" in outcome.err
        assert run("report").status == 2
        assert sorted(tmp_path.iterdir()) == before

    def test_without_a_store_there_is_no_file(self, run: Run, tmp_path: Path) -> None:
        """Nothing is created."""
        outcome = run("report", "--html", str(tmp_path / "x.html"), "--store", str(tmp_path / "none"))
        assert outcome.status == 6
        assert list(tmp_path.iterdir()) == []

    def test_what_is_no_file_is_written_to(self, run: Run, unused_store: Path, tmp_path: Path) -> None:
        """A pipe gets the page, and stays a pipe."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
            assert run("report", "--html", str(pipe)).status == 0
            assert reader.communicate(timeout=30)[0].startswith(b"<!DOCTYPE html>")
        assert pipe.is_fifo()

    def test_a_disk_that_is_full_leaves_the_old_file(self, unused_store: Path, tmp_path: Path) -> None:
        """There is never half a page, and nothing beside it."""
        path = tmp_path / "incident.html"
        path.write_text("old")
        before = sorted(tmp_path.iterdir())
        line = f"ulimit -f 8; exec {sys.executable} -m txnctl report --html {path}"
        done = subprocess.run(
            ["bash", "-c", line],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 6
        assert f"cannot write '{path}': File too large" in done.stderr
        assert path.read_text() == "old"
        assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["ground", "raised", "alarm-ground"])
@pytest.mark.parametrize("ink", ["ink", "soft", "alarm", "calm", "link"])
def test_every_text_stands_out_from_its_ground(theme: int, ground: str, ink: str) -> None:
    """By 4.5 to 1, as WCAG 2 asks for (AA)."""
    schemes = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+)", each)) for each in STYLE.split(":root {")[1:3]]
    one, other = sorted(luminance(schemes[theme][name]) for name in (ground, ink))
    assert (other + 0.05) / (one + 0.05) >= 4.5
