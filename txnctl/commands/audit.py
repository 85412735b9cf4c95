"""`txnctl audit`: administrative changes with author, time and reason."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.declaration import Group
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.time_values import TIME
from txnctl.cli.whole_number import WholeNumber
from txnctl.output.field import Help, fields_of, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import click
    from click.shell_completion import CompletionItem

    from storage.audit_trail import AuditRecord
    from txnctl.cli.context import Context

audit = Group("audit", "Who changed what, when, and why.")

CHANGES = fields_of(
    "storage.audit_trail:AuditRecord",
    {
        "number": Help("Its number; they grow.", heading="NO"),
        "changed_at_ms": Help("When it was changed.", heading="CHANGED"),
        "action": "The command, such as topics delete; transaction expired if nobody asked for it.",
        "target": Help("What was changed.", kind="id"),
        "reason": "What was said with --reason, or null; else timed-out, owner-dead, retention, ttl and so on.",
        "by": "Who: user@host:pid (program); for an expiry, whose command found it.",
        "effects": Help("What the command reported.", heading=""),
    },
)


def _actions(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from txnctl.cli.complete import audit_actions

    return audit_actions(ctx, incomplete)


def _targets(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from txnctl.cli.complete import audit_targets

    return audit_targets(ctx, incomplete)


def _records(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from txnctl.cli.complete import audit_records

    return audit_records(ctx, incomplete)


SETUP = ("txnctl topics create orders", "txnctl topics delete orders --yes --reason 'not used any more'")


@audit.command("list")
@option("-n", "--count", type=WholeNumber(1), metavar="N", help="The newest N only.")
@option("--since", type=TIME, help="Only those since that time, such as 2h ago: `2h`.")
@option(
    "--action",
    shell_complete=_actions,
    metavar="ACTION",
    help="Only this action, or this group of actions: 'topics delete', or topics.",
)
@option(
    "--target",
    shell_complete=_targets,
    metavar="TEXT",
    help="Only those with this text in their target.",
)
@reads_store
@output(CHANGES, name_field="number")
@example("txnctl audit list -n 20", setup=SETUP)
@example("txnctl audit list --since 2h --action 'topics delete' --target orders", setup=SETUP)
def list_(
    context: Context, count: int | None, since: int | None, action: str | None, target: str | None
) -> None:
    """List administrative changes and expired transactions, the newest first.

    A transaction expires at the deadline or with the death of the owner; the next writer aborts an expired
    transaction. A record is part of the change itself: neither exists without the record. Changes are kept for the
    next 100,000 records, expiries for the next 10,000.
    """
    rows = context.store.reports.list_audit_records(count, since_ms=since, action=action, target=target)
    if not rows and context.output == "table" and (since, action, target) != (None, None, None):
        near = "; an action is a group and a verb, such as 'transactions abort', or a group" if action else ""
        context.note(f"no record matches{near}")
    context.show_list(rows)


@audit.command("show")
@argument("number", type=WholeNumber(1), shell_complete=_records, help="The number of the change.")
@reads_store
@output(CHANGES, name_field="number")
@example("txnctl audit show 1", setup=SETUP)
def show(context: Context, number: int) -> None:
    """Show a change with every effect."""
    context.show(context.store.reports.show_audit_record(number), table=_lines)


def _lines(record: AuditRecord) -> Iterator[str]:
    """One line a fact, then one line an effect."""
    row = to_json(record)
    for field in CHANGES:
        if field.heading:
            yield f"{field.heading.lower():10}{field.cell(row)}"
    yield ""
    yield from _effects(record.effects, 2)


def _effects(effect: Mapping[str, object], indent: int) -> Iterator[str]:
    """One line a fact; nested values below the name, indented."""
    for name, value in effect.items():
        if name.endswith("Ms") and f"{name[:-2]}At" in effect:
            continue
        parts = [value] if isinstance(value, dict) and value else value if isinstance(value, list) else []
        if not any(isinstance(part, dict) for part in parts):
            yield f"{' ' * indent}{name:{max(1, 30 - indent)}}{_fact(name, value)}"
            continue
        for part in parts:
            yield f"{' ' * indent}{name}"
            yield from _effects(part, indent + 2)


def _fact(name: str, value: object) -> str:
    """A value; the short name of a topic."""
    if isinstance(value, str) and name == "topic":
        from storage.values.names import short_topic_name

        return shown(short_topic_name(value), "text")
    return shown(value, "duration" if name.endswith("Ms") else "text")
