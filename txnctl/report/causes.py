"""The causes of a page: findings with the open transactions and the topics of each."""

from __future__ import annotations

from typing import NamedTuple

from storage.reports.timeline import waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.reports.facts import Facts
    from storage.reports.finding import Finding
    from storage.reports.store_report import StoreReport
    from storage.reports.timeline import Timeline


class Cause(NamedTuple):
    """A finding with the ids of open transactions and the topics of the page.

    Attributes:
        topics: in the order of waiting messages, the most first.
    """

    finding: Finding
    txns: list[str]
    topics: list[Timeline]


def causes(report: StoreReport, limit: int) -> list[Cause]:
    """Return a cause for each of the first findings, in the same order."""
    ranked = sorted(report.timelines, key=lambda model: -waiting(model).messages)
    every = []
    for finding in report.overview.findings[:limit]:
        txns = _txns(report.overview.facts, finding)
        every.append(Cause(finding, txns, _topics(ranked, finding, txns)))
    return every


def _txns(facts: Facts, finding: Finding) -> list[str]:
    """Return the open transactions of a finding, by the code and the action of the finding."""
    late = [str(row.txn_id) for row in facts.transactions.late]
    if finding.code == "late-transactions":
        return late
    call, arguments = finding.action.call, finding.action.arguments
    if call == "resume_process":
        owned = [str(owned.row.txn_id) for owned in facts.transactions.stopped if owned.pid == arguments[0]]
        return [txn for txn in owned if txn not in late]
    return [str(arguments[0])] if call == "store.reports.explain_transaction" else []


def _topics(ranked: Sequence[Timeline], finding: Finding, txns: Sequence[str]) -> list[Timeline]:
    """Return the topics blocked by a transaction, else topics with messages of one, else the topic in `about`.

    A finding that only informs has no topic.

    Args:
        ranked: the topics of the page in the order of waiting messages, the most first.
    """
    if finding.severity == "info":
        return []
    blocked = [model for model in ranked if _blocker(model) in txns]
    touched = [
        model for model in ranked if any(str(link.holder.txn_id) in txns for link in model.open_transactions)
    ]
    return blocked or touched or [model for model in ranked if finding.about.endswith(f"topic {model.name}")]


def _blocker(model: Timeline) -> str | None:
    behind = waiting(model).behind
    return None if behind is None else str(behind.holder.txn_id)
