"""The report page: one self-contained document without requests or scripts, readable on paper and in dark mode.

The findings of `txnctl doctor` come first, each with its command, picture and evidence; the rest is folded. Every kind
of part has a bound of bytes, so that a page has at most `PAGE_BYTES_MAX`.
"""

from __future__ import annotations

from storage.values.timestamps import rfc3339
from txnctl.fields.overview import verdict_text
from txnctl.output.screen import store_title
from txnctl.report import lists, space, topics, transactions
from txnctl.report.figures import Pictures
from txnctl.report.markup import Markup, foreign, tag
from txnctl.report.style import STYLE
from txnctl.report.summary import summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.reports.store_report import StoreReport

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The Content-Security-Policy of the page: nothing but its own inline style."""

PAGE_BYTES_MAX = 2 << 20
"""The most bytes of a page, whatever is in the store."""

_ABSENT = (
    ("topics", "There are no topics."), ("subscriptions", "There are no subscriptions."),
    ("transactions", "No transaction is open."), ("producers", "No producer is connected."),
    ("tables", "There are no tables."), ("conflicts", "No conflict over a table is recorded."),
    ("space", ""), ("happened", "Nothing was changed by an operator, and no transaction has ended."),
)  # fmt: skip
"""The parts of the page after the summary, each with the sentence for a store without such things."""


def page(report: StoreReport, version: str, topics_only: Sequence[str]) -> str:
    """Return the document as text.

    Args:
        version: of txnctl.
        topics_only: the topics of the page; empty for all.
    """
    path = report.overview.facts.store.info.path
    name = store_title(path)
    figures, explanations = Pictures(), transactions.Explanations(report)
    first = summary(report, figures, explanations)
    sections = [
        topics.section(report.timelines, figures),
        lists.subscriptions(report),
        transactions.section(report, explanations),
        lists.producers(report),
        lists.key_values(report),
        transactions.conflicts(report.conflict_counts),
        space.section(report),
        lists.happened(report),
    ]
    absent = [sentence for (_, sentence), part in zip(_ABSENT, sections, strict=True) if part is None]
    body = tag(
        "body",
        _header(report, name, topics_only),
        tag(
            "main",
            first,
            [part for part in sections if part is not None],
            tag("p", " ".join(absent), class_="more") if absent else None,
        ),
        tag("footer", tag("p", _colophon(version), " ", _identity(report))),
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


def _header(report: StoreReport, name: str, topics_only: Sequence[str]) -> Markup:
    store, as_of = report.overview.facts.store.info, _as_of(report)
    limited = None
    if topics_only:
        listed = [part for topic in topics_only for part in (", ", foreign(topic, code=True))][1:]
        limited = tag(
            "p", "Limited to topics: ", listed, ". Findings, tables and space are of the whole store."
        )
    moment = tag("time", as_of, datetime=as_of)
    return tag(
        "header",
        tag("h1", foreign(name), " ", _verdict(report)),
        tag("p", moment, " ", foreign(store.path, code=True), class_="facts"),
        limited,
    )


def _verdict(report: StoreReport) -> Markup:
    overview = report.overview
    return tag(
        "span", verdict_text(overview.verdict, overview.findings), class_=f"verdict {overview.verdict}"
    )


def _as_of(report: StoreReport) -> str:
    return str(rfc3339(report.overview.facts.as_of_at_ms))


def _identity(report: StoreReport) -> Markup:
    """Return the identity of the store, which a copy keeps."""
    return tag("span", "Store ", tag("code", report.overview.facts.store.info.store_id), ".")


def _colophon(version: str) -> str:
    return (
        f"Made by txnctl report, release {version}, from one read transaction. "
        "No message, no value and no key of the store is on this page."
    )
