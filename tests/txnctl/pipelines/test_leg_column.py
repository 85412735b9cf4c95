"""The rule of a request over Arrow columns: `txnctl/pipelines/leg_column.py`."""

from __future__ import annotations

import pickle

import pyarrow as pa

from txnctl.pipelines.leg_column import legs_function
from txnctl.pipelines.request import RequestForm, legs_of

POSTING = RequestForm("sum", legs="legs")


def test_a_row_for_each_message_with_all_its_legs() -> None:
    """What is no request is null, and not an empty list."""
    values = [
        b'{"legs": [{"account": "B1", "sum": "-1"}, {"account": "B2", "sum": 1}]}',
        b'{"legs": []}',
        None,
    ]
    legs = legs_function(POSTING)(pa.nulls(3, pa.binary()), pa.array(values, pa.binary()))
    assert legs.to_pylist() == [
        [{"account": "B1", "hellers": -100}, {"account": "B2", "hellers": 100}],
        None,
        None,
    ]
    assert [legs_of(None, value, POSTING) is None for value in values] == [False, True, True]


def test_the_form_is_carried_to_tasks() -> None:
    """By pickle, as part of the function."""
    assert pickle.loads(pickle.dumps(POSTING)) == POSTING
