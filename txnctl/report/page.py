"""The report page: one self-contained document without requests or scripts, readable on paper and in dark mode.

The findings of `txnctl doctor` come first, with the next command of each.
"""

from __future__ import annotations

from os.path import basename

from storage.values.timestamps import rfc3339
from txnctl.fields.overview import verdict_text
from txnctl.output.human import count, sentence
from txnctl.output.screen import WAITS
from txnctl.output.shell import command, spell
from txnctl.report import lists, space, tables, topics, transactions
from txnctl.report.markup import Markup, foreign, join, tag
from txnctl.report.style import STYLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.finding import Finding
    from storage.reports.store_report import StoreReport

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The Content-Security-Policy of the page: nothing but its own inline style."""

_CONTENTS = (
    ("topics", "Topics"), ("subscriptions", "Subscriptions"), ("transactions", "Open transactions"),
    ("producers", "Producers"), ("tables", "Tables"), ("space", "Space"), ("happened", "What happened last"),
)  # fmt: skip
_FINDINGS_SHOWN = 6


def page(report: StoreReport, version: str, topics_only: Sequence[str]) -> str:
    """Return the document as text.

    Args:
        version: of txnctl.
        topics_only: the topics of the page; empty for all.
    """
    path = report.overview.facts.store.info.path
    name = basename(path) or path
    body = tag(
        "body",
        _header(report, name, version, topics_only),
        tag(
            "main",
            _summary(report),
            topics.section(report.timelines),
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


def _head(report: StoreReport, name: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"/>'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{name}: {report.overview.verdict}, as of {_as_of(report)}"),
        tag("style", Markup(STYLE)),
    )


def _header(report: StoreReport, name: str, version: str, topics_only: Sequence[str]) -> Markup:
    store, as_of = report.overview.facts.store.info, _as_of(report)
    limited = None
    if topics_only:
        listed = [part for topic in topics_only for part in (", ", foreign(topic, code=True))][1:]
        limited = tag(
            "p", "Limited to topics: ", listed, ". Findings, tables and space are of the whole store."
        )
    pairs = [
        ("as of", tag("time", as_of, datetime=as_of)),
        ("path", foreign(store.path, code=True)),
        ("store", tag("code", store.store_id)),
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


def _verdict(report: StoreReport) -> Markup:
    overview = report.overview
    return tag(
        "span", verdict_text(overview.verdict, overview.findings), class_=f"verdict {overview.verdict}"
    )


def _as_of(report: StoreReport) -> str:
    return str(rfc3339(report.overview.facts.as_of_at_ms))


def _summary(report: StoreReport) -> Markup:
    """Return the findings with their next commands, and the counts beside the findings."""
    findings = [_finding(finding) for finding in report.overview.findings]
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


def _numbers(report: StoreReport) -> Iterator[tuple[str, str]]:
    facts = report.overview.facts
    yield "messages blocked", count(sum(topic.blocked_messages for topic in facts.topics))
    yield "messages uncommitted", count(sum(topic.uncommitted_messages for topic in facts.topics))
    yield "transactions open", count(facts.transactions.open)
    yield "transactions late", count(len(facts.transactions.late))
    stuck = sum(1 for subscription in facts.subscriptions if subscription.verdict in WAITS)
    yield "subscriptions blocked", f"{count(stuck)} of {count(len(facts.subscriptions))}"


def _finding(finding: Finding) -> Markup:
    return tag(
        "article",
        tag(
            "h3",
            tag("span", finding.severity, class_=f"word {finding.severity}"),
            " ",
            sentence(finding.what),
        ),
        tag("p", spell(finding.why)),
        tag("p", "Next: ", tag("code", command(finding.action)), class_="command"),
        class_=f"finding {finding.severity}",
    )


def _colophon(version: str) -> str:
    return (
        f"Made by txnctl {version} with `txnctl report`, from one read transaction. "
        "No message, no value and no key of the store is on this page."
    )
