"""The rule of a request as a function of Arrow columns, in a task of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnctl.pipelines.request import legs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from txnctl.pipelines.request import RequestForm

LEGS = "array<struct<account: string, hellers: bigint>>"


def legs_function(form: RequestForm) -> Callable[[pa.Array, pa.Array], pa.Array]:
    """Return the function of keys and values with a result of the type LEGS: null for what is no request."""

    def legs(keys: pa.Array, values: pa.Array) -> pa.Array:
        import pyarrow as pa

        leg = pa.struct([("account", pa.string()), ("hellers", pa.int64())])
        requests = map(legs_of, keys.to_pylist(), values.to_pylist(), [form] * len(keys))
        return pa.array(
            [None if request is None else [*map(_leg, request)] for request in requests], pa.list_(leg)
        )

    # Spark reads the annotations, and PyArrow is imported in the task alone.
    legs.__annotations__ = {}
    return legs


def _leg(leg: tuple[str, int]) -> dict[str, str | int]:
    return {"account": leg[0], "hellers": leg[1]}
