"""How `txnctl check` tells monitoring: as a plugin of Nagios does, as JSON; for Prometheus see `check_metrics.py`."""

from __future__ import annotations

from txnctl.commands.health.check_measures import EVERY, STATES, worst
from txnctl.output.escape import printable
from txnctl.output.shell import spell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.errors import TxnctlError
    from txnctl.cli.error_report import Failure
    from txnctl.commands.health.check_measures import Judged

_BY_NAME = {measure.name: measure for measure in EVERY}
_LESS_IS_WORSE = {measure.name for measure in EVERY if measure.less_is_worse}


def state_without_store(error: TxnctlError) -> str:
    """CRITICAL where the store is broken or full; UNKNOWN where the store could not be read from here at this
    moment.
    """
    unseen = ("store-not-found", "not-permitted", "store-in-use", "platform-unsupported")
    return "UNKNOWN" if error.code in unseen or error.exit_code == 2 else "CRITICAL"


def nagios(measures: Sequence[Judged]) -> Iterator[str]:
    """One line with the state and performance data, then a line for each measure beyond a threshold."""
    bad = sorted(
        (measure for measure in measures if measure.state != "OK"),
        key=lambda measure: -STATES.index(measure.state),
    )
    facts = [f"{measure.name} {_value(measure)}" for measure in bad]
    facts = facts or ["all measures are within their thresholds"]
    performance = " ".join([_performance(measure) for measure in measures if measure.value is not None])
    yield f"TXNCTL {worst(measures)} - {_plain(', '.join(facts))} | {performance}"
    for measure in bad:
        where = f" ({measure.where})" if measure.where else ""
        compared = f"{measure.name} {_value(measure)} {_limit_passed(measure)}"
        yield _plain(f"{measure.state}: {compared}{where}: {measure.what}")


def nagios_without_store(error: TxnctlError | Failure, state: str) -> Iterator[str]:
    """What is known: the store could not be read."""
    yield f"TXNCTL {state} - {_plain(error.message)}"
    if error.hint:
        yield _plain(spell(error.hint))


def _value(measure: Judged) -> str:
    assert measure.value is not None, "an unknown value is beyond no threshold"
    return _BY_NAME[measure.name].shown(measure.value)


def _limit_passed(measure: Judged) -> str:
    """`> 5m00s`: the side of the threshold that the value is on, and the threshold."""
    limit = measure.critical if measure.state == "CRITICAL" else measure.warn
    assert limit is not None, "a measure without a threshold is OK"
    sign = "<" if measure.name in _LESS_IS_WORSE else ">"
    return f"{sign} {_BY_NAME[measure.name].shown(limit)}"


def _plain(text: str) -> str:
    """Without characters that end the text for a monitoring system."""
    return printable(text).replace("|", "/")


def _performance(measure: Judged) -> str:
    """`late=2;0;;0`: value with unit, the two thresholds as ranges, the least there can be."""
    name = measure.name.replace("-", "_")
    sign = ":" if measure.name in _LESS_IS_WORSE else ""
    warn, critical = [
        "" if limit is None else _base(measure, limit) + sign for limit in (measure.warn, measure.critical)
    ]
    unit = {"ms": "s", "bytes": "B", "percent": "%"}.get(measure.unit or "", "")
    assert measure.value is not None, "an unknown value has no performance data"
    return f"{name}={_base(measure, measure.value)}{unit};{warn};{critical};0"


def _base(measure: Judged, value: int) -> str:
    """A value in the unit that performance data has: seconds, bytes, or a number."""
    return f"{value / 1000:.3f}".rstrip("0").rstrip(".") if measure.unit == "ms" else str(value)
