"""`txnctl topics config`: the limits of one topic, and its compaction."""

from __future__ import annotations

from typing import NamedTuple

from storage.limits import TOMBSTONE_RETENTION_MS
from txnctl.cli.decorators import (
    administrative,
    argument,
    example,
    names_store,
    option,
    option_values,
    output,
)
from txnctl.cli.option_values import OptionValues
from txnctl.cli.retention_values import (
    COMPACTION_THRESHOLD,
    RETENTION_HARD,
    RETENTION_SIZE,
    RETENTION_TIME,
    TOMBSTONE_RETENTION,
)
from txnctl.cli.value_types import TOPIC
from txnctl.fields.change import DRY_RUN
from txnctl.fields.topic import LET_GO, NAMES, OTHER_LIMITS, RETENTION
from txnctl.output.field import Help, fields_of
from txnctl.output.human import duration, size
from txnctl.output.limit_lines import let_go, limit_hard, limit_size, limit_time
from txnctl.output.screen import dry_run_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.admin.limit_forecast import LetGo
    from storage.topic.retention import RetentionLimits
    from txnctl.cli.context import Context


class TopicConfig(NamedTuple):
    """The limits in force for a topic, whether each is the topic's own, those before a change, and its compaction."""

    topic: str
    name: str
    retention_time_ms: int | None
    retention_bytes: int | None
    retention_hard: str
    ttl_ms: int | None
    expire_after_ms: int | None
    own_retention_time: bool
    own_retention_size: bool
    own_retention_hard: bool
    own_ttl: bool
    own_expire_after: bool
    before: RetentionLimits | None
    lets_go: LetGo | None
    compaction_threshold_bytes: int | None
    tombstone_retention_ms: int
    dry_run: bool


class LimitOptions(OptionValues):
    """The options of limits; None leaves a limit as it is."""

    retention_time: int | str | None
    retention_size: int | str | None
    retention_hard: str | None
    ttl: int | str | None
    expire_after: int | str | None


OWN = ", set for this topic"
_COMPACTION = "compaction"
_SETUP = "txnctl topics create orders"


@argument("topic", type=TOPIC, help="The topic.")
@option(
    "--retention-time",
    type=RETENTION_TIME,
    metavar="DURATION",
    help="Keep acknowledged messages at least so long; 0, `unset` or `store`.",
)
@option(
    "--retention-size",
    type=RETENTION_SIZE,
    metavar="SIZE",
    help="Keep at least so much of what is acknowledged; 0, `unset` or `store`.",
)
@option(
    "--retention-hard",
    type=RETENTION_HARD,
    metavar="off|trim|refuse|store",
    is_flag=False,
    flag_value="trim",
    help="Effect of both on messages NOT acknowledged: kept (off), lost (trim, also without a word), or no new ones "
    "(refuse).",
)
@option(
    "--ttl",
    type=RETENTION_TIME,
    metavar="DURATION",
    help="Acknowledge messages of that age for every subscription; `unset` or `store`.",
)
@option(
    "--expire-after",
    type=RETENTION_TIME,
    metavar="DURATION",
    help="Delete a subscription that had no consumer for so long; `unset` or `store`.",
)
@option_values("limits", LimitOptions)
@option(
    "--compaction-threshold",
    type=COMPACTION_THRESHOLD,
    metavar="SIZE",
    help="Compact when so much of the log is not compacted; or `unset`: by hand.",
)
@option(
    "--tombstone-retention",
    type=TOMBSTONE_RETENTION,
    metavar="DURATION",
    help="Keep a tombstone in the compacted view at least so long; 0: until the next compaction. [default: 24h]",
)
@names_store(effect="writes")
@administrative
@output(
    fields_of(
        TopicConfig,
        {
            **NAMES,
            **RETENTION,
            **OTHER_LIMITS,
            "own_retention_time": Help("Whether the time is the topic's own, not the store's.", heading=""),
            "own_retention_size": Help("Whether the size is the topic's own, not the store's.", heading=""),
            "own_retention_hard": Help("Whether the effect is the topic's own.", heading=""),
            "own_ttl": Help("Whether the time to live is the topic's own.", heading=""),
            "own_expire_after": Help("Whether the expiry is the topic's own.", heading=""),
            "before": Help("The limits in force before; null where nothing was set.", heading=""),
            **LET_GO,
            "compaction_threshold_bytes": Help(
                "Bytes not compacted from which on writers compact the topic; null for never.",
                kind="size",
                heading="COMPACTION THRESHOLD",
            ),
            "tombstone_retention_ms": Help(
                "The time for which the compacted view keeps a tombstone at least.",
                heading="TOMBSTONE RETENTION",
            ),
            **DRY_RUN,
        },
    ),
    name_field="name",
)
@example("txnctl topics config orders", setup=_SETUP)
@example("txnctl topics config orders --retention-time 7d --retention-size 10G", setup=_SETUP)
@example("txnctl topics config orders --retention-size 10G --retention-hard trim --dry-run", setup=_SETUP)
@example("txnctl topics config orders --ttl 30d --expire-after 14d", setup=_SETUP)
@example(
    "txnctl topics config orders --retention-time unset --reason 'audit asks for all of it'", setup=_SETUP
)
@example("txnctl topics config orders --compaction-threshold 64M --tombstone-retention 7d", setup=_SETUP)
def config(
    context: Context,
    topic: str,
    limits: LimitOptions,
    compaction_threshold: int | str | None,
    tombstone_retention: int | None,
) -> None:
    """Show or set the limits of what a topic keeps, and its compaction.

    Everything is kept unless a limit is set. A retention keeps acknowledged messages at least that long or that large;
    with both, the first one reached lets a ledger go. 0 keeps nothing once it is acknowledged, `unset` sets no limit,
    and `store` takes the limit of `txnctl store config`.

    Messages that a subscription has not acknowledged or an open transaction holds are kept too, unless --retention-hard
    says otherwise. `trim`: such messages go as well; cursors move on, `subscriptions show` and `audit list` count the
    loss of each subscription, and an open transaction in the way is aborted first. `refuse`: nothing is lost, and
    producers are refused (`topic-full`) while more than the limits is not acknowledged. A limit of 0 is never hard.

    --ttl acknowledges messages of that age for every subscription, up to maxReadPosition; messages pending in an open
    transaction wait for the end. --expire-after deletes a subscription without a consumer for so long.

    A reader without a subscription holds nothing back, and a topic without a subscription keeps nothing beyond the
    limits. A dead-letter topic takes dead-letter-retention-time and -size of `txnctl store config`, and no other limit
    of the store. With --dry-run the command says how much the limits would let go.

    With a compaction threshold, processes that write compact the topic on their way, a few milliseconds a write, while
    more than the threshold is not compacted; so does `txnctl store gc`. Messages that are not in the compacted view yet
    are kept, whatever the limits say, hard ones too.
    """
    asked = {name for name, value in vars(limits).items() if value is not None}
    is_retention = bool(asked)
    is_compaction = compaction_threshold is not None or tombstone_retention is not None
    is_change = is_retention or is_compaction
    with context.open_store(context.store_path, read_only=not is_change) as store:
        compacted = store.reports.topic_compaction(topic).compaction
        threshold = None if compacted is None else compacted.threshold_bytes
        tombstone_ms = TOMBSTONE_RETENTION_MS if compacted is None else compacted.tombstone_retention_ms
        if is_compaction:
            asked.add(_COMPACTION)
            changed = store.admin.topics.set_compaction(
                topic,
                threshold=compaction_threshold,
                tombstone_retention_ms=tombstone_retention,
                dry_run=context.dry_run,
                reason=context.reason,
            ).effects
            threshold, tombstone_ms = changed.threshold_bytes, changed.tombstone_retention_ms
        if is_retention:
            effects = store.admin.topics.set_retention(
                topic,
                time_ms=limits.retention_time,
                size=limits.retention_size,
                hard=limits.retention_hard,
                ttl_ms=limits.ttl,
                expire_after_ms=limits.expire_after,
                dry_run=context.dry_run,
                reason=context.reason,
            ).effects
            full, own, in_force = effects.topic, effects.own, effects.in_force
            before: RetentionLimits | None = effects.in_force_before
            lets_go: LetGo | None = effects.lets_go
        else:
            shown = store.reports.topic_retention(topic)
            full, own, in_force = shown.topic, shown.own, shown.in_force
            before = lets_go = None
        has_letters = store.reports.topic_retention(topic).has_letters
    from storage.values.names import short_topic_name

    row = TopicConfig(
        topic=full,
        name=short_topic_name(full),
        retention_time_ms=in_force.time_ms,
        retention_bytes=in_force.bytes,
        retention_hard=in_force.hard or "off",
        ttl_ms=in_force.ttl_ms,
        expire_after_ms=in_force.expire_after_ms,
        own_retention_time=own.time_ms is not None,
        own_retention_size=own.bytes is not None,
        own_retention_hard=own.hard is not None,
        own_ttl=own.ttl_ms is not None,
        own_expire_after=own.expire_after_ms is not None,
        before=before,
        lets_go=lets_go,
        compaction_threshold_bytes=threshold,
        tombstone_retention_ms=tombstone_ms,
        dry_run=is_change and context.dry_run,
    )
    general = ", as the store has it for dead letters" if has_letters else ", as the store has it"
    shown_parts = asked or {*LimitOptions.__annotations__, *(() if compacted is None else (_COMPACTION,))}
    context.show(row, table=lambda row: _lines(context, row, general, shown_parts))


def _lines(context: Context, row: TopicConfig, general: str, shown: set[str]) -> Iterator[str]:
    """The limits that were asked for or changed.

    Args:
        shown: parameters of the command, or _COMPACTION.
    """
    yield from dry_run_heading(context, row.dry_run)
    yield f"Topic {row.name}"
    for parameter, (name, value, before, is_own) in zip(
        LimitOptions.__annotations__, _values(row), strict=True
    ):
        if parameter not in shown:
            continue
        yield f"  {name:<15} {value}{OWN if is_own else general}"
        if before is not None and before != value:
            yield f"  {'':<15} before: {before}"
    if _COMPACTION in shown:
        yield f"  compaction      {_compaction(row)}"
    if row.lets_go is not None:
        yield from let_go(row.lets_go, dry_run=row.dry_run)
    if not shown & {"retention_time", "retention_size", "retention_hard"}:
        return
    if row.retention_time_ms is None and row.retention_bytes is None:
        yield "Every message is kept."
        return
    yield "What every subscription has acknowledged goes at the first limit reached, by"
    yield "whole ledgers. Readers without a subscription hold nothing back."
    if row.retention_hard != "off" and 0 in (row.retention_time_ms, row.retention_bytes):
        yield "A limit of 0 is never hard: what is not acknowledged stays."


def _compaction(row: TopicConfig) -> str:
    threshold, kept_ms = row.compaction_threshold_bytes, row.tombstone_retention_ms
    when = "by hand" if threshold is None else f"at {size(threshold)}"
    kept = f"stay {duration(kept_ms)}" if kept_ms else "go with the next compaction"
    return f"{when}, tombstones {kept}"


def _values(row: TopicConfig) -> Iterator[tuple[str, str, str | None, bool]]:
    """Name, value, value before and origin of each limit."""
    was = row.before
    yield (
        "retention time", limit_time(row.retention_time_ms),
        None if was is None else limit_time(was.time_ms), row.own_retention_time,
    )  # fmt: skip
    yield (
        "retention size", limit_size(row.retention_bytes),
        None if was is None else limit_size(was.bytes), row.own_retention_size,
    )  # fmt: skip
    yield (
        "retention hard", limit_hard(row.retention_hard),
        None if was is None else limit_hard(was.hard), row.own_retention_hard,
    )  # fmt: skip
    yield "ttl", limit_time(row.ttl_ms), None if was is None else limit_time(was.ttl_ms), row.own_ttl
    yield (
        "expire after", limit_time(row.expire_after_ms),
        None if was is None else limit_time(was.expire_after_ms), row.own_expire_after,
    )  # fmt: skip
