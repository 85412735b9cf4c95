"""The report page: one self-contained document without requests or scripts, readable on paper and in dark mode.

The findings of `txnctl doctor` come first, with the next command of each.
"""

from __future__ import annotations

from os.path import basename

from txnctl.fields.overview import verdict_text
from txnctl.output.human import count, sentence
from txnctl.report import lists, space, tables, topics, transactions
from txnctl.report.markup import Markup, foreign, join, tag
from txnctl.report.style import STYLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnctl.output.row import Row

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The Content-Security-Policy of the page: nothing but its own inline style."""

_CONTENTS = (
    ("topics", "Topics"), ("subscriptions", "Subscriptions"), ("transactions", "Open transactions"),
    ("producers", "Producers"), ("tables", "Tables"), ("space", "Space"), ("happened", "What happened last"),
)  # fmt: skip
_FINDINGS_SHOWN = 6


def page(report: Row, version: str, topics_only: Sequence[str]) -> str:
    """Return the document as text.

    Args:
        version: of txnctl.
        topics_only: the topics of the page; empty for all.
    """
    name = basename(report["store"]["path"]) or report["store"]["path"]
    body = tag(
        "body",
        _header(report, name, version, topics_only),
        tag(
            "main",
            _summary(report),
            topics.section(report["timelines"]),
            lists.subscriptions(report),
            transactions.section(report),
            lists.producers(report),
            lists.key_values(report),
            space.section(report),
            lists.happened(report),
        ),
        tag("footer", tag("p", _colophon(version))),
    )
    return f"<!DOCTYPE html>\n{tag('html', _head(report, name), body, lang='en')}\n"


def _head(report: Row, name: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"/>'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{name}: {report['verdict']}, as of {report['asOfAt']}"),
        tag("style", Markup(STYLE)),
    )


def _header(report: Row, name: str, version: str, topics_only: Sequence[str]) -> Markup:
    store = report["store"]
    limited = None
    if topics_only:
        listed = [part for topic in topics_only for part in (", ", foreign(topic, code=True))][1:]
        limited = tag(
            "p", "Limited to topics: ", listed, ". Findings, tables and space are of the whole store."
        )
    pairs = [
        ("as of", tag("time", report["asOfAt"], datetime=report["asOfAt"])),
        ("path", foreign(store["path"], code=True)),
        ("store", tag("code", store["storeId"])),
        ("txnctl", version),
    ]
    contents = [tag("li", tag("a", title, href=f"#{anchor}")) for anchor, title in _CONTENTS]
    return tag(
        "header",
        tag("h1", foreign(name), " ", _verdict(report)),
        tables.facts(pairs),
        limited,
        tag("nav", tag("ul", contents), aria_label="Contents"),
    )


def _verdict(report: Row) -> Markup:
    return tag("span", verdict_text(report), class_=f"verdict {report['verdict']}")


def _summary(report: Row) -> Markup:
    """Return the findings with their next commands, and the counts beside the findings."""
    findings = [_finding(finding) for finding in report["findings"]]
    parts: list[Markup] = findings[:_FINDINGS_SHOWN] or [tag("p", "Nothing is wrong.", class_="fine")]
    if len(findings) > _FINDINGS_SHOWN:
        rest = findings[_FINDINGS_SHOWN:]
        parts.append(tag("details", tag("summary", f"{count(len(rest))} more"), rest))
    numbers = tag(
        "dl",
        [tag("div", tag("dt", name), tag("dd", text)) for name, text in _numbers(report)],
        class_="tiles",
    )
    return tables.section(
        "summary", "What is wrong, and what to do next" if findings else "Health", numbers, join(parts)
    )


def _numbers(report: Row) -> Iterator[tuple[str, str]]:
    open_ones = report["transactions"]
    yield "messages blocked", count(sum(row["blockedMessages"] for row in report["topics"]))
    yield "messages uncommitted", count(sum(row["uncommittedMessages"] for row in report["topics"]))
    yield "transactions open", count(open_ones["open"])
    yield "transactions late", count(len(open_ones["late"]))
    stuck = [row for row in report["subscriptions"] if row["blocked"]]
    yield "subscriptions blocked", f"{count(len(stuck))} of {count(len(report['subscriptions']))}"


def _finding(finding: Row) -> Markup:
    return tag(
        "article",
        tag(
            "h3",
            tag("span", finding["severity"], class_=f"word {finding['severity']}"),
            " ",
            sentence(finding["what"]),
        ),
        tag("p", finding["why"]),
        tag("p", "Next: ", tag("code", finding["command"]), class_="command"),
        class_=f"finding {finding['severity']}",
    )


def _colophon(version: str) -> str:
    return (
        f"Made by txnctl {version} with `txnctl report`, from one read transaction. "
        "No message, no value and no key of the store is on this page."
    )
