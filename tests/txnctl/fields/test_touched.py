"""What a transaction touched, in words."""

from __future__ import annotations

from typing import Any

from txnctl.fields.touched import short_names, touched, touched_parts

TOPIC: dict[str, Any] = {
    "kind": "topic", "name": "orders", "messages": 3, "positions": [f"1:{number}" for number in range(9)],
    "cumulative": None,
}  # fmt: skip
ACKS: dict[str, Any] = {
    "kind": "subscription", "name": "orders", "subscription": "billing", "messages": 1, "positions": [],
    "cumulative": None,
}  # fmt: skip
TABLE: dict[str, Any] = {
    "kind": "table",
    "table": "accounts",
    "keys": 4,
    "keyList": [{"key": "B1"}, {"key": "B2"}],
}
ROW: dict[str, Any] = {
    "topics": ["persistent://public/default/orders"], "messages": 3, "acknowledgements": 1, "state": "OPEN",
    "parts": [TOPIC, ACKS, TABLE],
}  # fmt: skip


def test_a_sentence_has_all_kinds() -> None:
    """And says so where there is nothing."""
    assert touched(ROW) == "3 messages on orders; 1 acknowledgement; 4 keys of accounts"
    assert touched({**ROW, "messages": 0, "acknowledgements": 0, "parts": []}) == "it had touched nothing"
    assert short_names(ROW) == ["orders"]


def test_a_line_each_with_the_first_places() -> None:
    """Eight stretches; dots for more."""
    produced, acknowledged, _ = touched_parts(ROW, is_open=True)
    assert produced == {
        "what": "produced to orders", "count": "3 messages",
        "where": "1:0, 1:1, 1:2, 1:3, 1:4, 1:5, 1:6, 1:7, ...",
    }  # fmt: skip
    assert acknowledged == {
        "what": "acknowledgements pending on orders, billing",
        "count": "1 message",
        "where": "-",
    }


def test_acknowledgements_are_pending_as_long_as_it_is_open() -> None:
    """A cumulative one says up to where."""
    row = {**ROW, "parts": [{**ACKS, "cumulative": "1:7", "positions": ["1:9"]}]}
    (line,) = touched_parts(row, is_open=False)
    assert line["what"] == "acknowledged on orders, billing"
    assert line["where"] == "through 1:7, 1:9"


def test_keys_are_held_written_or_were_held() -> None:
    """By the state; those not in the list are dots."""
    for state, verb in (("OPEN", "holds keys of"), ("COMMITTED", "wrote"), ("ABORTED", "held keys of")):
        (line,) = touched_parts({**ROW, "state": state, "parts": [TABLE]}, is_open=state == "OPEN")
        assert line == {"what": f"{verb} table accounts", "count": "4 keys", "where": "B1, B2, ..."}
