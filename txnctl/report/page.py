"""The page: one self-contained document that asks for nothing, runs nothing, and reads well on paper and at night.

What is wrong, and what to type next, comes first; it is what `txnctl doctor` finds.
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
    from typing import Any

    Row = dict[str, Any]

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load for it: nothing; its style is its own."""

_CONTENTS = (
    ("topics", "Topics"), ("subscriptions", "Subscriptions"), ("transactions", "Open transactions"),
    ("producers", "Producers"), ("tables", "Tables"), ("space", "Space"), ("happened", "What happened last"),
)  # fmt: skip
_FINDINGS_SHOWN = 6


def page(report: Row, version: str, wanted: Sequence[str]) -> str:
    """The document as text.

    Args:
        version: of txnctl.
        wanted: the topics that it is limited to; none is all.
    """
    name = basename(report["store"]["path"]) or report["store"]["path"]
    body = tag(
        "body",
        _header(report, name, version, wanted),
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


def _header(report: Row, name: str, version: str, wanted: Sequence[str]) -> Markup:
    store = report["store"]
    limited = None
    if wanted:
        listed = [each for topic in wanted for each in (", ", foreign(topic, code=True))][1:]
        limited = tag(
            "p", "Limited to topics: ", listed, ". Findings, tables and space are of the whole store."
        )
    pairs = [
        ("as of", tag("time", report["asOfAt"], datetime=report["asOfAt"])),
        ("path", foreign(store["path"], code=True)),
        ("store", tag("code", store["storeId"])),
        ("txnctl", version),
    ]
    contents = [tag("li", tag("a", title, href=f"#{place}")) for place, title in _CONTENTS]
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
    """What is stuck now, and the next command; then the numbers beside it."""
    found = [_finding(each) for each in report["findings"]]
    parts: list[Markup] = found[:_FINDINGS_SHOWN] or [tag("p", "Nothing is wrong.", class_="fine")]
    if len(found) > _FINDINGS_SHOWN:
        rest = found[_FINDINGS_SHOWN:]
        parts.append(tag("details", tag("summary", f"{count(len(rest))} more"), rest))
    numbers = tag(
        "dl",
        [tag("div", tag("dt", name), tag("dd", text)) for name, text in _numbers(report)],
        class_="tiles",
    )
    return tables.section(
        "summary", "What is wrong, and what to do next" if found else "Health", numbers, join(parts)
    )


def _numbers(report: Row) -> Iterator[tuple[str, str]]:
    open_ones = report["transactions"]
    yield "messages blocked", count(sum(each["blockedMessages"] for each in report["topics"]))
    yield "messages uncommitted", count(sum(each["uncommittedMessages"] for each in report["topics"]))
    yield "transactions open", count(open_ones["open"])
    yield "transactions late", count(len(open_ones["late"]))
    stuck = [each for each in report["subscriptions"] if each["blocked"]]
    yield "subscriptions blocked", f"{count(len(stuck))} of {count(len(report['subscriptions']))}"


def _finding(found: Row) -> Markup:
    return tag(
        "article",
        tag(
            "h3",
            tag("span", found["severity"], class_=f"word {found['severity']}"),
            " ",
            sentence(found["what"]),
        ),
        tag("p", found["why"]),
        tag("p", "Next: ", tag("code", found["command"]), class_="command"),
        class_=f"finding {found['severity']}",
    )


def _colophon(version: str) -> str:
    return (
        f"Made by txnctl {version} with `txnctl report`, from one read transaction. "
        "No message, no value and no key of the store is on this page."
    )
