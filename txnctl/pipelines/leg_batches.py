"""Arrow batches of messages as Arrow batches of legs, in a task of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from txnctl.pipelines.request import legs_of

if TYPE_CHECKING:
    import pyarrow as pa

    from txnctl.pipelines.request import RequestForm

    Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

LEG = ("leg", "account", "hellers", "problem")


def legs_by_batch(form: RequestForm, carried: tuple[str, ...]) -> Batches:
    """Return the function that parses batches of messages.

    Args:
        carried: the columns of the message that are repeated beside each leg; `key` and `value` are read too.
    """

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _legs(batch, form, carried)

    return parse


def _legs(batch: pa.RecordBatch, form: RequestForm, carried: tuple[str, ...]) -> pa.RecordBatch:
    """Parse one batch: a row for each leg, and one row, with a problem, for a message that is no request."""
    import pyarrow as pa

    rows, indexes = list[int](), list[int]()
    accounts, hellers, problems = list[str | None](), list[int | None](), list[str | None]()
    problem = f"a request has {form.wanted}"
    for row, (key, value) in enumerate(
        zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
    ):
        legs = legs_of(key, value, form)
        if legs is None:
            rows.append(row)
            indexes.append(0)
            accounts.append(None)
            hellers.append(None)
            problems.append(problem)
            continue
        for index, (account, amount) in enumerate(legs):
            rows.append(row)
            indexes.append(index)
            accounts.append(account)
            hellers.append(amount)
            problems.append(None)
    kept = batch.select(list(carried)).take(pa.array(rows, pa.int64()))
    columns = [
        pa.array(indexes, pa.int32()),
        pa.array(accounts, pa.string()),
        pa.array(hellers, pa.int64()),
        pa.array(problems, pa.string()),
    ]
    return pa.RecordBatch.from_arrays([*kept.columns, *columns], names=[*carried, *LEG])
