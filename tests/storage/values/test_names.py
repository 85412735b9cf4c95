"""Names: what may be one, and how topics are written."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, strategies as st

from storage.errors import InvalidName
from storage.limits import NAME_BYTES_MAX, TOPIC_NAME_BYTES_MAX
from storage.values.names import check_name, full_topic_name, short_topic_name

ALLOWED = string.ascii_letters + string.digits + "-_.=:"
parts = st.text(ALLOWED, min_size=1, max_size=40).filter(lambda name: name not in (".", ".."))


class TestTopicNames:
    """`topic` is short for `persistent://public/default/topic`."""

    @given(parts)
    def test_a_short_name_lies_in_the_default_namespace(self, name: str) -> None:
        """Short and full are two ways to write one topic, and people are shown the short one."""
        full = full_topic_name(name)
        assert full == f"persistent://public/default/{name}"
        assert full_topic_name(full) == full
        assert short_topic_name(full) == name

    @given(parts, parts, parts)
    def test_a_full_name_is_itself(self, tenant: str, namespace: str, name: str) -> None:
        """A topic elsewhere has no short name."""
        full = f"persistent://{tenant}/{namespace}/{name}"
        assert full_topic_name(full) == full
        if (tenant, namespace) != ("public", "default"):
            assert short_topic_name(full) == full

    @pytest.mark.parametrize(
        "name",
        ["", "a/b", "a/b/c", "/a", "a/", "../a", "..", ".", "persistent://a", "persistent://a/b", "persistent:///a/b",
         "persistent://a/b/", "persistent://a/b/c/d", "persistent://a/../c", "non-persistent://a/b/c", "a b", "a\n",
         "a\0", "ä", "a\x1b[0m", "a%2f", "*", "~", "a\\b", "💥", "\udcff"],
    )  # fmt: skip
    def test_nothing_else_is_a_topic(self, name: str) -> None:
        """Paths, blanks, control characters and other letters are refused, and the message is printable ASCII."""
        with pytest.raises(InvalidName) as caught:
            full_topic_name(name)
        assert caught.value.message.isascii()
        assert caught.value.message.isprintable()

    def test_a_name_has_a_bounded_length(self) -> None:
        """Each part, and the whole, may be so long and no longer."""
        assert full_topic_name("x" * NAME_BYTES_MAX)
        with pytest.raises(InvalidName):
            full_topic_name("x" * (NAME_BYTES_MAX + 1))
        room = TOPIC_NAME_BYTES_MAX - len("persistent:////") - 2 * 100
        assert (
            len(full_topic_name(f"persistent://{'t' * 100}/{'n' * 100}/{'x' * room}")) == TOPIC_NAME_BYTES_MAX
        )
        with pytest.raises(InvalidName):
            full_topic_name(f"persistent://{'t' * 100}/{'n' * 100}/{'x' * (room + 1)}")

    @given(st.text(max_size=30))
    def test_no_text_breaks_the_check(self, name: str) -> None:
        """Whatever is given is a topic with one full name, or refused."""
        try:
            full = full_topic_name(name)
        except InvalidName:
            return
        assert full_topic_name(short_topic_name(full)) == full


class TestOtherNames:
    """Subscriptions, producers, consumers, labels."""

    @given(parts)
    def test_a_valid_name_is_returned_as_it_is(self, name: str) -> None:
        """Letters, digits and -_.=: make a name."""
        assert check_name("label name", name) == name

    @given(st.text(min_size=1, max_size=5))
    def test_one_other_character_spoils_it(self, name: str) -> None:
        """A name with any other character is refused, with the kind of name in the message."""
        if set(name) <= set(ALLOWED):
            return
        with pytest.raises(InvalidName, match="label name"):
            check_name("label name", name)
