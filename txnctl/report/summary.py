"""The first part of the page: the counts, and each cause with command, picture, topics and evidence."""

from __future__ import annotations

from storage.reports.timeline import waiting
from txnctl.output.column import Column
from txnctl.output.human import count, duration, plural, sentence
from txnctl.output.screen import WAITS
from txnctl.output.shell import command, line, spell
from txnctl.report import tables
from txnctl.report.causes import Cause, causes
from txnctl.report.figures import Pictures, interest
from txnctl.report.markup import Markup, join, prose, tag
from txnctl.report.transactions import Explanations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.reports.finding import Finding
    from storage.reports.store_report import StoreReport
    from storage.reports.timeline import Timeline

_SHOWN = 6
"""Causes that are not folded, and have pictures and evidence."""
_LISTED = 40
"""Causes on the page; further findings are counted."""
_EXPLAINED = 3
"""Transactions of a cause with evidence inside the article; further transactions are explained below."""


def _waits_for(model: Timeline) -> str | None:
    oldest_ms = waiting(model).oldest_at_ms
    return None if oldest_ms is None else duration(max(0, model.as_of_at_ms - oldest_ms))


_TOPICS: tuple[Column[Timeline], ...] = (
    Column("TOPIC", "id", lambda model: model.name),
    Column("BLOCKED", "integer", lambda model: waiting(model).messages),
    Column("OLDEST FOR", "text", _waits_for),
)


def summary(report: StoreReport, figures: Pictures, explanations: Explanations) -> Markup:
    """Return the causes, the worst first, and the counts of the store.

    Args:
        figures: get the pictures of the causes; without a cause that has one, the picture of one topic.
        explanations: give the evidence of the causes.
    """
    every, number_of_all = causes(report, _LISTED), len(report.overview.findings)
    parts = [
        _cause(cause, figures if number < _SHOWN else None, explanations)
        for number, cause in enumerate(every)
    ]
    shown = parts[:_SHOWN] or [tag("p", "Nothing is wrong.", class_="fine")]
    if len(parts) > _SHOWN:
        shown.append(tag("details", tag("summary", f"{count(len(parts) - _SHOWN)} more"), parts[_SHOWN:]))
    if number_of_all > len(every):
        left = f"{count(number_of_all - len(every))} more: "
        shown.append(tag("p", left, tag("code", line("doctor")), class_="more"))
    if not figures.drawn and report.timelines:
        shown.append(figures.figure(max(report.timelines, key=interest)))
    is_ok = report.overview.verdict == "ok"
    title = "Health" if is_ok else "What is wrong"
    return tables.section("summary", title, _numbers(report), join(shown), figures.legend())


def _cause(cause: Cause, figures: Pictures | None, explanations: Explanations) -> Markup:
    """Return a cause: problem and command, then the picture, and the paragraphs last."""
    finding = cause.finding
    evidence = explanations.take(cause.txns[:_EXPLAINED]) if figures is not None else []
    picture = None
    if figures is not None and cause.topics and cause.topics[0].topic not in figures.drawn:
        picture = figures.figure(cause.topics[0])
    return tag(
        "article",
        tag(
            "h3",
            tag("span", finding.severity, class_=f"word {finding.severity}"),
            " ",
            _heading(finding),
        ),
        tag("p", "Next: ", tag("code", command(finding.action)), class_="command"),
        picture,
        _topics(cause),
        tag("p", prose(spell(finding.why))),
        evidence,
        class_=f"finding {finding.severity}",
    )


def _heading(finding: Finding) -> list[str]:
    """Return the cause, and the effects in a lighter type."""
    mark = ": " if finding.severity == "info" else "; "
    cause, mark, effects = sentence(finding.what).partition(mark)
    return [cause, tag("span", f"{mark}{effects}", class_="effects")] if effects else [cause]


def _topics(cause: Cause) -> Markup | None:
    """Return the topics that a cause holds up, where there are several."""
    if len(cause.topics) < 2:
        return None
    blocked = sum(bool(waiting(model).messages) for model in cause.topics)
    caption = (
        f"{plural(blocked, 'topic')} blocked by this"
        if blocked
        else f"{plural(len(cause.topics), 'topic')} of this"
    )
    return tables.table(caption, cause.topics, _TOPICS, more=line("status"), layout=tables.SMALL)


def _numbers(report: StoreReport) -> Markup:
    pairs = [tag("div", tag("dt", name), tag("dd", text)) for name, text in _counts(report)]
    return tag("dl", pairs, class_="tiles")


def _counts(report: StoreReport) -> Iterator[tuple[str, str]]:
    facts = report.overview.facts
    yield "messages blocked", count(sum(topic.blocked_messages for topic in facts.topics))
    yield "messages uncommitted", count(sum(topic.uncommitted_messages for topic in facts.topics))
    yield "transactions open", count(facts.transactions.open)
    yield "transactions late", count(len(facts.transactions.late))
    stuck = sum(1 for subscription in facts.subscriptions if subscription.verdict in WAITS)
    yield "subscriptions blocked", f"{count(stuck)} of {count(len(facts.subscriptions))}"
