"""The choice of an engine: Spark, or this process alone."""

from __future__ import annotations

from typing import TypeVar

from storage.errors import InvalidValue
from txnctl.cli.decorators import option, option_values
from txnctl.cli.option_values import OptionValues
from txnctl.cli.value_types import NamedConstant
from txnctl.cli.whole_number import WholeNumber
from txnctl.output.field import Help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from txnctl.cli.declaration import Body
    from txnctl.commands.pipeline.session import SparkOptions

F = TypeVar("F", bound="Body")
AUTO, LOCAL, SPARK = "auto", "local", "spark"
LOCAL_MAX_DEFAULT = 100_000
"""Messages: more of them are done sooner on Spark, its start included, on a machine of some cores."""

ENGINE = {"engine": Help("Which engine did the job: local or spark.", kind="id")}
_NAMES = {LOCAL: "local engine", SPARK: "Spark"}


class EngineOptions(OptionValues):
    """The engine, and the most messages that `auto` leaves to the local one."""

    engine: str
    local_max: int | None


def chooses_engine(function: F) -> F:
    """Take --engine and --local-max as `engine_options`."""
    with_max = option(
        "--local-max",
        type=WholeNumber(0),
        help="With --engine auto: the most messages that are done without Spark. [default: 100,000]",
    )
    with_engine = option(
        "--engine",
        type=NamedConstant("engine", (AUTO, LOCAL, SPARK)),
        default=AUTO,
        help="spark; local, this process without Java; auto by the number of messages. [default: auto]",
    )
    return option_values("engine_options", EngineOptions)(with_engine(with_max(function)))


def of_spark(options: SparkOptions, offload_path: str | None) -> dict[str, bool]:
    """Return which of the options that only Spark knows are given."""
    return {
        "--master": options.master is not None,
        "--conf": bool(options.conf),
        "--offload-path": offload_path is not None,
    }


def choose(options: EngineOptions, only_spark: Mapping[str, bool], messages: Callable[[], int]) -> str:
    """Choose the engine.

    Args:
        only_spark: options that the local engine does not have, and whether each is given.
        messages: counts the messages of the job.

    Raises:
        InvalidValue: options that do not go together.
    """
    if options.local_max is not None and options.engine != AUTO:
        raise InvalidValue(f"--local-max is for --engine auto, and --engine {options.engine} is given")
    given = [name for name, is_given in only_spark.items() if is_given]
    if options.engine == LOCAL and given:
        raise InvalidValue(
            f"{given[0]} is for Spark, and --engine local is given", hint="Leave one of them out."
        )
    if options.engine != AUTO:
        return options.engine
    if given:
        return SPARK
    most = LOCAL_MAX_DEFAULT if options.local_max is None else options.local_max
    return LOCAL if messages() <= most else SPARK


def engine_name(engine: str) -> str:
    """Return the words for an engine, for people."""
    return _NAMES[engine]
