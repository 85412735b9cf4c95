"""`txnctl pipeline run`: a Python program of the user's, with a Spark session ready."""

from __future__ import annotations

import click

from storage.errors import TxnctlError
from txnctl.cli.decorators import argument, example, names_store, passes_arguments
from txnctl.commands.pipeline.session import session, uses_spark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnctl.cli.context import Context
    from txnctl.commands.pipeline.session import SparkOptions

_JOB = 'print(spark.read.format("txnctl").option("topic", "orders").load().count())'


@argument("file", type=click.Path(exists=True, dir_okay=False), help="The Python program.")
@argument(
    "arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARG]...", help="Handed on to it as sys.argv."
)
@uses_spark
@passes_arguments
@names_store(effect="writes")
@example(
    "txnctl pipeline run count.py",
    setup=("txnctl topics create orders", "seq 5 | txnctl produce orders", f"echo '{_JOB}' > count.py"),
)
def run(
    context: Context,
    file: str,
    arguments: Sequence[str],
    spark_options: SparkOptions,
) -> None:
    """Run a Python program of yours with a Spark session.

    The program finds the session as `spark`, the path of the store as `store` and in TXNCTL_STORE, and the format
    txnctl ready to use (docs/SPARK.md). The exit code is that of the program, 1 after an exception, 12 after a failure
    of Spark.
    """
    import os

    from txnctl.spark.store_name import shown_name

    path = shown_name(context.store_path)
    os.environ["TXNCTL_STORE"] = path
    with session(f"run {os.path.basename(file)}", spark_options) as spark:
        status = _run(file, list(arguments), {"spark": spark, "store": path})
    context.exit(status)


def _run(file: str, arguments: list[str], names: dict[str, object]) -> int:
    """Run the program; its exit code.

    Raises:
        TxnctlError: an exception of the program, with the line.
    """
    import runpy
    import sys

    from txnctl.spark.runtime.job_errors import is_of_spark

    sys.argv = [file, *arguments]
    try:
        runpy.run_path(file, init_globals=names, run_name="__main__")
    except SystemExit as leaving:
        return _status(leaving.code)
    except TxnctlError:
        raise
    except Exception as error:
        if is_of_spark(error):
            raise
        raise TxnctlError(
            f"{file}{_line(error, file)}: {type(error).__name__}: {error}",
            hint="--debug shows its traceback.",
        ) from error
    return 0


def _status(code: object) -> int:
    """The exit code of `sys.exit(code)`; a text is an error's."""
    if code is None or isinstance(code, int):
        return code or 0
    raise TxnctlError(str(code))


def _line(error: Exception, file: str) -> str:
    """The line of the program that raised, or that called the raising function."""
    from traceback import extract_tb

    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == file]
    return f", line {lines[-1]}" if lines else ""
