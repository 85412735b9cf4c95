"""Lines of NDJSON: objects, or a reason; and bytes given as text or Base64."""

from __future__ import annotations

import pytest

from txnctl.output.json_object import Unreadable, read_bytes, read_object


def test_an_object_comes_with_whatever_space() -> None:
    """An empty line is none."""
    assert read_object(b'  {"a": [1, null]}\r\n') == {"a": [1, None]}
    assert read_object(b" \t\r\n") is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a": \xff}', "not UTF-8 at byte 6"),
        (b'{"a": }', "not JSON: Expecting value at character 7"),
        (b"[1]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{} {"a": 1}', "more follows the JSON value, at character 3"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_object_is_said(line: bytes, reason: str) -> None:
    """With the place, where there is one."""
    with pytest.raises(Unreadable) as unreadable:
        read_object(line)
    assert str(unreadable.value) == reason


def test_bytes_are_read_from_either_field() -> None:
    """Null is nothing; so is a field that is not there, unless it is needed."""
    assert read_bytes({"key": "ä"}, "key") == "ä".encode()
    assert read_bytes({"keyBase64": "/w=="}, "key") == b"\xff"
    assert read_bytes({"key": None}, "key", needed=True) is None
    assert read_bytes({}, "key") is None


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ({}, 'neither "key" nor "keyBase64" is there'),
        ({"key": 5}, '"key" is not text'),
        ({"key": "\ud800"}, '"key" holds half of a surrogate pair'),
        ({"key": "a", "keyBase64": "YQ=="}, 'both "key" and "keyBase64" are there'),
        ({"keyBase64": "?"}, '"keyBase64" is not Base64'),
        ({"keyBase64": 5}, '"keyBase64" is not Base64'),
        ({"keyBase64": "YQ"}, '"keyBase64" is not Base64'),
    ],
)
def test_what_are_no_bytes_is_said(found: dict[str, object], reason: str) -> None:
    """By the name of the field."""
    with pytest.raises(Unreadable) as unreadable:
        read_bytes(found, "key", needed=True)
    assert str(unreadable.value) == reason
