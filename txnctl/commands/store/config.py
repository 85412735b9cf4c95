"""`txnctl store config`: settings kept in the store, for every process."""

# The signatures are click's.
# ruff: noqa: ARG002

from __future__ import annotations

from typing import NamedTuple

from storage.errors import InvalidValue
from storage.values.durations import duration_text
from txnctl.cli.decorators import administrative, argument, example, names_store, output, partial_rows
from txnctl.cli.retention_values import STORE_RETENTION_HARD, STORE_RETENTION_SIZE, STORE_RETENTION_TIME
from txnctl.cli.value_types import DURATION_MS, SIZE, Grammar
from txnctl.fields.topic import LET_GO
from txnctl.output.field import Help, fields_of
from txnctl.output.limit_lines import let_go

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    import click
    from click.shell_completion import CompletionItem

    from storage import Store
    from storage.admin.limit_forecast import LetGo
    from storage.topic.retention import RetentionLimits
    from txnctl.cli.context import Context


class StoreSetting(NamedTuple):
    """A setting of a store."""

    name: str
    value: str
    meaning: str


class SettingChanged(NamedTuple):
    """A setting that was changed, or would be."""

    name: str
    value: str
    before: str
    lets_go: LetGo | None
    dry_run: bool
    meaning: str


SETTINGS = fields_of(
    SettingChanged,
    {
        "name": Help("The setting.", kind="id"),
        "value": "Its value.",
        "before": Help("What it was, where it was just set.", heading=""),
        **LET_GO,
        "dry_run": Help("Whether nothing was changed, where it was to be set.", heading=""),
        "meaning": "What it is for.",
    },
)

REAP_POLICY = "reap-policy"
TABLE_RETENTION = "table-retention"
DEAD_LETTER_TIME = "dead-letter-retention-time"
DEAD_LETTER_SIZE = "dead-letter-retention-size"
RESERVE = "reserve"
SEQUENCE_RETENTION = "sequence-retention"
RETENTION_TIME = "retention-time"
RETENTION_SIZE = "retention-size"
RETENTION_HARD = "retention-hard"
TTL = "ttl"
EXPIRE_AFTER = "expire-after"
UNSET = "unset"
MEANINGS = {
    DEAD_LETTER_TIME: "How long dead letters are kept, on topics without a limit of their own.",
    DEAD_LETTER_SIZE: "How much of dead letters is kept, on topics without a limit of their own.",
    REAP_POLICY: "What the next writer aborts: all (overdue ones and those of dead owners), overdue, or manual.",
    RESERVE: "Bytes of disk kept for commands that free space, so that a full disk is no dead end.",
    RETENTION_TIME: "How long acknowledged messages are kept, on topics without a limit of their own.",
    RETENTION_SIZE: "How much of what is acknowledged is kept, on topics without a limit of their own.",
    RETENTION_HARD: "What both do to messages not acknowledged: off (keep them), trim, or refuse producers.",
    TTL: "The age at which messages are acknowledged for every subscription that has not.",
    EXPIRE_AFTER: "How long a subscription may have no consumer before it is deleted.",
    SEQUENCE_RETENTION: "How long sequence ids of trimmed messages are kept after their last use.",
    TABLE_RETENTION: "How long older versions of table rows are kept, for reads in the past and long transactions.",
}


class SettingName(Grammar):
    """The name of a setting."""

    name = "setting"
    names = tuple(MEANINGS)
    sample = REAP_POLICY

    def read(self, text: str) -> str:
        """The name unchanged.

        Raises:
            InvalidValue: no such setting; the hint has the nearest one.
        """
        if text in MEANINGS:
            return text
        from txnctl.cli.near_names import did_you_mean

        raise InvalidValue(
            f"a store has no setting {text[:80]!r}",
            hint=f"{did_you_mean(text, MEANINGS)}It has {', '.join(MEANINGS)}.",
            given=text[:80],
        )

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The settings, with what each is for."""
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(name, help=text) for name, text in MEANINGS.items() if name.startswith(incomplete)
        ]


_WORDS = {REAP_POLICY: ("all", "overdue", "manual"), RETENTION_HARD: ("off", "trim", "refuse")}
"""Settings that are one of some words; a limit may be `unset`."""


def _values(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    words = _WORDS.get(ctx.params.get("name") or "", (UNSET,))
    return [word for word in words if word.startswith(incomplete)]


@argument(
    "name", type=SettingName(), required=False, metavar="[NAME]", help="The setting; all if it is left out."
)
@argument(
    "value",
    required=False,
    shell_complete=_values,
    help="Its new value; without one the setting is only shown.",
)
@names_store(effect="writes")
@administrative
@partial_rows
@output(SETTINGS, name_field="name")
@example("txnctl store config")
@example("txnctl store config reap-policy overdue --reason 'operators look at orphans first'")
@example("txnctl store config retention-time 7d")
@example("txnctl store config table-retention 1d")
def config(context: Context, name: str | None, value: str | None) -> None:
    """Show or change the settings of a store, which apply to every process.

    dead-letter-retention-time and -size: a duration and a size, `unset` by default, for dead-letter topics, which
    retention-time and retention-size leave alone, and the limits below: nobody subscribes to them, so their messages
    would go unseen.

    reap-policy: with `all` the next writer aborts transactions that are overdue or owned by a process proven dead;
    `overdue` leaves transactions of dead owners to an operator; `manual` leaves all to `transactions reap`.

    reserve: a size, 1M unless set, or 0. A file of this size beside the data keeps room for commands that free space,
    which need some before they free any; see `store space --freeable`. A store on a server has none.

    retention-time and retention-size: a duration and a size, `unset` by default. What every subscription has
    acknowledged is kept at least that long or that large; with both, the first limit reached lets it go. A topic
    without a subscription keeps nothing beyond the limits: give it its own with `txnctl topics config`.

    sequence-retention: a duration, 7d unless set, or `unset`. The sequence ids of a producer name go so long after its
    last use, and not before its messages are trimmed; the same id counts anew after that.

    retention-hard: `off`, `trim` or `refuse`: what both do to messages that a subscription has not acknowledged. ttl
    and expire-after: a duration, `unset` by default. `txnctl topics config --help` tells of each. The answer says what
    the new limit lets go of.

    table-retention: a duration, 1h unless set. `tables get --at` reads as far back; a transaction that is older can
    use no table any more; `store gc` removes older versions. Raising the setting brings no removed version back.
    """
    with context.open_store(context.store_path, read_only=value is None) as store:
        if name is None:
            context.show_list([_setting(store, setting) for setting in MEANINGS])
        elif value is None:
            context.show(_setting(store, name), table=lambda row: row.value)
        else:
            context.show(_changed(context, store, name, value), table=_report)
            if name == RESERVE and not context.dry_run:
                _warn_of_short_reserve(context, store)


def _setting(store: Store, name: str) -> StoreSetting:
    info = store.reports.store_info()
    value = {
        REAP_POLICY: lambda: info.reap_policy,
        RESERVE: lambda: size_argument(store.reports.reserve_size()),
        RETENTION_TIME: lambda: _limit(info.retention_time_ms, duration_text),
        RETENTION_SIZE: lambda: _limit(info.retention_bytes, size_argument),
        DEAD_LETTER_TIME: lambda: _limit(store.reports.dead_letter_retention().time_ms, duration_text),
        DEAD_LETTER_SIZE: lambda: _limit(store.reports.dead_letter_retention().bytes, size_argument),
        SEQUENCE_RETENTION: lambda: _limit(store.reports.sequence_retention_ms(), duration_text),
        RETENTION_HARD: lambda: info.retention_hard,
        TTL: lambda: _limit(info.ttl_ms, duration_text),
        EXPIRE_AFTER: lambda: _limit(info.expire_after_ms, duration_text),
        TABLE_RETENTION: lambda: duration_text(info.table_retention_ms),
    }[name]()
    return StoreSetting(name, value, MEANINGS[name])


def _changed(context: Context, store: Store, name: str, value: str) -> SettingChanged:
    """Change a setting, or show the change."""
    settings, dry_run, reason, lets_go = store.admin.settings, context.dry_run, context.reason, None
    if name == REAP_POLICY:
        policy = settings.set_reap_policy(value, dry_run=dry_run, reason=reason).effects
        after, before = policy.reap_policy, policy.reap_policy_before
    elif name == RESERVE:
        room = settings.set_reserve(SIZE.convert(value, None, None), dry_run=dry_run, reason=reason).effects
        after, before = size_argument(room.reserve_bytes), size_argument(room.reserve_bytes_before)
    elif name in _LIMITS:
        limit = _LIMITS[name]
        of = settings.set_dead_letter_retention if limit.of_letters else settings.set_retention
        asked = {limit.keyword: limit.type.convert(value, None, None)}
        limits = of(**asked, dry_run=dry_run, reason=reason).effects
        after, before = limit.text(limits.limits), limit.text(limits.before)
        lets_go = limits.lets_go
    elif name == SEQUENCE_RETENTION:
        kept_ms = STORE_RETENTION_TIME.convert(value, None, None)
        ids = settings.set_sequence_retention(kept_ms, dry_run=dry_run, reason=reason).effects
        after = _limit(ids.sequence_retention_ms, duration_text)
        before = _limit(ids.sequence_retention_ms_before, duration_text)
    else:
        retention_ms = DURATION_MS.convert(value, None, None)
        retention = settings.set_table_retention(retention_ms, dry_run=dry_run, reason=reason).effects
        after = duration_text(retention.table_retention_ms)
        before = duration_text(retention.table_retention_ms_before)
    return SettingChanged(name, after, before, lets_go, dry_run, MEANINGS[name])


class _LimitSetting(NamedTuple):
    """A setting that is a limit of topics, or of dead-letter topics: keyword and type of its value, and its text."""

    keyword: str
    type: Grammar
    text: Callable[[RetentionLimits], str]
    of_letters: bool = False


_TIME = _LimitSetting("time_ms", STORE_RETENTION_TIME, lambda kept: _limit(kept.time_ms, duration_text))
_SIZE = _LimitSetting("size", STORE_RETENTION_SIZE, lambda kept: _limit(kept.bytes, size_argument))
_LIMITS = {
    DEAD_LETTER_TIME: _TIME._replace(of_letters=True),
    DEAD_LETTER_SIZE: _SIZE._replace(of_letters=True),
    RETENTION_TIME: _TIME,
    RETENTION_SIZE: _SIZE,
    RETENTION_HARD: _LimitSetting("hard", STORE_RETENTION_HARD, lambda kept: kept.hard or "off"),
    TTL: _LimitSetting("ttl_ms", STORE_RETENTION_TIME, lambda kept: _limit(kept.ttl_ms, duration_text)),
    EXPIRE_AFTER: _LimitSetting(
        "expire_after_ms", STORE_RETENTION_TIME, lambda kept: _limit(kept.expire_after_ms, duration_text)
    ),
}


def _warn_of_short_reserve(context: Context, store: Store) -> None:
    """Say that the disk has no room for the whole reserve: the setting stands, and the room is missing."""
    from txnctl.output.human import size

    kept, size_set = store.reports.reserve_kept(), store.reports.reserve_size()
    if kept < size_set:
        context.warn(
            f"the disk has room for {size(kept)} of the reserve, not for {size(size_set)}; "
            "the next writes extend it as soon as there is room"
        )


def _limit(value: int | None, text: Callable[[int], str]) -> str:
    return UNSET if value is None else text(value)


def size_argument(size: int) -> str:
    """A size in the form of an argument: `10G`, `1536`."""
    for unit, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def _report(row: SettingChanged) -> list[str]:
    change = f"{row.name}: {row.before} -> {row.value}"
    if row.lets_go is not None and row.value == "0":
        change += " (nothing is kept once acknowledged)"
    lines = ["DRY RUN: nothing was changed.", "", change] if row.dry_run else [change]
    if row.lets_go is not None:
        lines += let_go(row.lets_go, dry_run=row.dry_run)
    return lines
