"""`txnctl check`: for monitoring systems."""

from __future__ import annotations

from typing import NamedTuple

import click

from storage.errors import InvalidValue, TxnctlError
from storage.json_form import to_json
from txnctl.cli import error_report, exit_codes
from txnctl.cli.declaration import command
from txnctl.cli.decorators import example, names_store, option, output, typed_format
from txnctl.fields.overview import AS_OF, FINDINGS
from txnctl.output.field import fields_of
from txnctl.output.json_text import indented
from txnctl.output.shell import spell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

    from storage.reports.activity import StoreActivity
    from storage.reports.finding import Finding
    from storage.reports.overview import Overview
    from txnctl.cli.context import Context
    from txnctl.commands.health.check_measures import Judged

FORMATS = ("nagios", "prometheus", "json")


class CheckFailure(NamedTuple):
    """The error of a store that cannot be read."""

    code: str
    message: str
    hint: str | None


class CheckResult(NamedTuple):
    """The check as JSON; `error` is None for a store that was read."""

    state: str
    as_of_at_ms: int
    measures: list[Judged]
    findings: list[Finding]
    error: CheckFailure | None


CHECKED = fields_of(
    CheckResult,
    {
        "state": "OK, WARNING, CRITICAL or UNKNOWN: as the worst measure.",
        **AS_OF,
        "measures": "name, state, value, unit (ms, bytes; null for a number), warn, critical, where, what.",
        **FINDINGS,
        "error": "Why the store cannot be read: code, message, hint; null for a store that was read.",
    },
)


@command
@option("--warn", multiple=True, metavar="NAME=VALUE", help="WARNING beyond this; more than once.")
@option("--critical", multiple=True, metavar="NAME=VALUE", help="CRITICAL beyond this; more than once.")
@option(
    "--output", type=click.Path(dir_okay=False), metavar="FILE", help="prometheus, json: replace this file."
)
@option("--exit-code", is_flag=True, help="prometheus, json: end with 8 unless all is OK.")
@names_store(effect="reads")
@typed_format("--format")
@output(CHECKED, name_field="state", formats=FORMATS, default=FORMATS[0])
@example("txnctl check")
@example("txnctl check --format nagios --warn lag=1000 --critical lag=50000 --critical blocked-age=5m")
@example("txnctl check --format prometheus")
@example("txnctl check --format prometheus --output txnctl.prom")
@example("txnctl check -o json --warn late=3 --exit-code")
def check(
    context: Context, warn: tuple[str, ...], critical: tuple[str, ...], output: str | None, exit_code: bool
) -> None:
    r"""Measure the store for monitoring, and compare with thresholds.

    \b
    gate         1 while a process that does not go on holds the writer gate
                 critical 0
    late         open transactions that are overdue or orphaned
                 warn 0
    blocked-age  how long the oldest blocked message has waited
                 warn 1m, critical 10m
    stopped      stopped consumers, owners of open transactions,
                 and producers for whom others wait
                 warn 0
    held         subscriptions and tables of which a transaction
                 with nobody at work holds messages or keys
                 warn 0
    quiet        how long a living consumer has held messages
                 and acknowledged none
                 warn 1m
    livelocks    tables of which jobs keep losing keys to each other,
                 with hardly a commit
                 warn 0
    waiting      producers that wait for the same topic
    lag          messages that the slowest subscription has visible
    space        what the disk has left; less is worse
                 warn 1G, critical 128M
    readers      places for readers that are taken, of 512
                 warn 400, critical 500
    standby      synchronous standbys that changes of a store
                 on a server wait for in vain
                 critical 0
    standby-lag  log that the last standby lacks
                 warn 64M
    vacuum       age of the oldest transaction in the database:
                 rows that died since stay
                 warn 5m
    connections  percent of the server's connections in use
                 warn 90, critical 98
    conflicts    transactions that lost a key of a table
                 in the last 5 minutes (1,000 at most)
    abort-rate   percent of the transactions ended in the last
                 5 minutes that are aborted, if 10 or more ended

    `space` and `readers` are of directories, and unknown on a server (null in JSON); the four from `standby` on are of
    servers alone.

    `stopped` and `held` agree with `doctor`: a transaction is idle if the process is gone or stopped, or after a
    minute without use. `doctor` and `status` show blocked messages at once.

    A measure is beyond a threshold when it is greater (space: less), as monitoring plugins read one. `nagios` ends
    with 0 OK, 1 WARNING, 2 CRITICAL or 3 UNKNOWN, and brings performance data. `prometheus` is the text format; every
    topic, subscription (with subscriptionIsolationLevel) and table has gauges. Counters (messages, commits, aborts by
    reason, conflicts, takeovers, redeliveries, flushes) and the histogram of commit latency are of the whole store, and
    begin at zero with each boot, and in a copied or restored store. --output replaces the file whole, with mode 0644,
    as node_exporter's textfile collector wants it. A store that cannot be opened is CRITICAL where it is broken or
    full, UNKNOWN where missing, not permitted or being compacted; for Prometheus that is txnctl_up 0. TXNCTL_OUTPUT has
    no say here: the exit codes of a plugin must not depend on a variable.
    """
    from txnctl.commands.health.check_formats import state_without_store
    from txnctl.commands.health.check_measures import judge, worst
    from txnctl.commands.health.survey import overview_and_activity

    format = context.output
    if output is not None and format == "nagios":
        raise _no_file_of_a_plugin(output)
    limits = _limits(context, format, warn, critical)
    try:
        overview, activity = overview_and_activity(context)
        measures = judge(overview, activity.ends, *limits)
        state, lines = worst(measures), _with_store(format, overview, activity, measures)
    except TxnctlError as error:
        state, lines = state_without_store(error), _without_store(format, error)
    except Exception as error:
        if format == "nagios":
            _end_unknown(context, error)
        raise
    if format == "nagios":
        context.print_lines(lines)
    else:
        _write(context, "".join([f"{line}\n" for line in lines]), output)
    _end(context, format, state, exit_code)


def _write(context: Context, text: str, output: str | None) -> None:
    """Write to standard output, or replace a file, which a collector of a different user is to read."""
    if output is None:
        context.out.write(text)
        return
    import os

    from txnctl.output.replaced_file import replace_file

    directory = context.store_directory
    store = directory if directory is not None and os.path.isdir(directory) else None
    replace_file(output, text.encode(), mode=0o644, store=store, heeds_umask=False)


def _no_file_of_a_plugin(output: str) -> click.UsageError:
    from txnctl.output.shell import line

    error = click.UsageError("--output goes with --format prometheus or json; a plugin of Nagios prints.")
    error.hint = f"For example: {line('check', format='prometheus', output=output)}"  # type: ignore[attr-defined]
    return error


def _limits(
    context: Context, format: str, warn: tuple[str, ...], critical: tuple[str, ...]
) -> tuple[dict[str, int], dict[str, int]]:
    """The thresholds; for a plugin of Nagios a wrong one is UNKNOWN, as 2 would say CRITICAL."""
    from txnctl.commands.health.check_formats import nagios_without_store
    from txnctl.commands.health.check_measures import thresholds

    try:
        return thresholds(warn, "--warn"), thresholds(critical, "--critical")
    except InvalidValue as error:
        if format != "nagios":
            raise
        context.print_lines(nagios_without_store(error, "UNKNOWN"))
        _end(context, format, "UNKNOWN", False)


def _with_store(
    format: str, overview: Overview, activity: StoreActivity, measures: list[Judged]
) -> Iterable[str]:
    from txnctl.commands.health import check_formats as formats
    from txnctl.commands.health.check_measures import worst
    from txnctl.commands.health.check_metrics import prometheus

    if format == "nagios":
        return formats.nagios(measures)
    if format == "prometheus":
        return prometheus(overview, activity, measures)
    as_of_ms = overview.facts.as_of_at_ms
    return _json(CheckResult(worst(measures), as_of_ms, measures, overview.findings, None))


def _without_store(format: str, error: TxnctlError) -> Iterable[str]:
    from txnctl.commands.health import check_formats as formats

    state = formats.state_without_store(error)
    if format == "nagios":
        return formats.nagios_without_store(error, state)
    if format == "prometheus":
        from txnctl.commands.health.check_metrics import prometheus_without_store

        return prometheus_without_store()
    from storage.process.clock import SYSTEM_CLOCK

    failure = CheckFailure(error.code, error.message, error.hint)
    return _json(CheckResult(state, SYSTEM_CLOCK.wall_ms(), [], [], failure))


def _json(result: CheckResult) -> Iterable[str]:
    return [indented(to_json(result, spell))]


def _end_unknown(context: Context, error: Exception) -> NoReturn:
    """A bug must not end with the exit code of WARNING: nothing is known of the store."""
    from txnctl.commands.health.check_formats import nagios_without_store
    from txnctl.commands.health.check_measures import STATES

    context.print_lines(nagios_without_store(error_report.of(error), "UNKNOWN"))
    raise exit_codes.EndsWith(STATES.index("UNKNOWN")) from error


def _end(context: Context, format: str, state: str, exit_code: bool) -> NoReturn:
    """With the code that the format wants."""
    from txnctl.commands.health.check_measures import STATES

    if format == "nagios":
        context.exit(STATES.index(state))
    context.exit(exit_codes.CONDITION_FOUND if exit_code and state != "OK" else exit_codes.DONE)
