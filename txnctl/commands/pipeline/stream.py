"""Shared options of the streaming jobs: start, duration, checkpoint."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TypeVar

from storage.errors import InvalidValue
from txnctl.cli.decorators import option, option_values
from txnctl.cli.option_values import OptionValues
from txnctl.cli.time_values import POSITION_TEXT
from txnctl.cli.value_types import DURATION
from txnctl.cli.whole_number import WholeNumber

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.cli.context import Context
    from txnctl.cli.declaration import Body

F = TypeVar("F", bound="Body")
EVERY_DEFAULT_S = 1.0


class StreamOptions(OptionValues):
    """Start, size of a micro-batch, duration and checkpoint of a streaming job."""

    once: bool
    for_: float | None
    every: float | None
    from_: str | None
    max_messages: int | None
    checkpoint: str | None


def streams(function: F) -> F:
    """Take --once, --for, --every, --from, --max-messages and --checkpoint as `stream`."""
    for declare in (
        option(
            "--checkpoint",
            metavar="DIR",
            help="Where Spark keeps its notes, to go on from. [default: none are kept]",
        ),
        option(
            "--max-messages",
            type=WholeNumber(1),
            help="At the most in one micro-batch. [default: 500,000]",
        ),
        option(
            "--from", "from_", type=POSITION_TEXT, help="Where to begin in the topic. [default: earliest]"
        ),
        option("--every", type=DURATION, help="Time between two looks at the topic. [default: 1s]"),
        option("--for", "for_", type=DURATION, help="End after so long."),
        option("--once", is_flag=True, help="Take what is there, and end."),
    ):
        function = declare(function)
    return option_values("stream", StreamOptions)(function)


def timing(options: StreamOptions) -> tuple[float | None, float | None]:
    """Seconds between two micro-batches, None for a single batch; seconds to run, None without a limit.

    Raises:
        InvalidValue
    """
    if not options.once:
        return options.every or EVERY_DEFAULT_S, options.for_
    if options.every is not None:
        raise InvalidValue("--once looks at the topic once; --every does not go with it")
    return None, options.for_


@contextmanager
def checkpoint(path: str | None) -> Iterator[str]:
    """The directory for Spark's notes; without a path one that is removed at the end."""
    from txnctl.pipelines import files
    from txnctl.spark.runtime.scratch import scratch_directory

    if path is not None:
        yield files.uri_to_write(path)
        return
    with scratch_directory() as place:
        yield files.uri_to_write(place)


def check_topic(context: Context, topic: str, subscription: str | None) -> None:
    """See that the topic is there, and that no query reads the subscription, before Spark is started.

    Raises:
        TopicNotFound
        SubscriptionBusy: another query reads the subscription; it is named.
    """
    from txnctl.spark.source.stream_hold import wait_until_free

    with context.open_store(context.store_path, read_only=True) as store:
        store.reports.topic_stats(topic)
        if subscription is not None:
            wait_until_free(store, topic, subscription)
