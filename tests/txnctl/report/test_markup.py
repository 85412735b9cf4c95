"""Markup: elements as text, in which users' words are only words."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st

from txnctl.report.markup import Markup, foreign, join, prose, tag


def test_children_of_every_kind() -> None:
    """Text, markup, lists of them, and nothing."""
    made = tag("p", "a<b", tag("b", "c"), [tag("i", "d"), "&"], None)
    assert made == "<p>a&lt;b<b>c</b><i>d</i>&amp;</p>\n"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("or `txnctl <a> b`.", "or <code>txnctl &lt;a&gt; b</code>."),
        ("`a` and `b`", "<code>a</code> and <code>b</code>"),
        ("an odd ` stays", "an odd ` stays"),
        ("none", "none"),
    ],
)
def test_commands_in_backquotes_are_elements(text: str, made: str) -> None:
    """What is copied has no backquote."""
    assert prose(text) == made


def test_attributes() -> None:
    """None and False are left out, True is the name; a trailing line is cut, others are hyphens."""
    made = tag("span", class_="x", aria_hidden=True, hidden=False, title=None, stroke_width=2.0, x=1.25)
    assert made == '<span class="x" aria-hidden="aria_hidden" stroke-width="2" x="1.2"></span>' or made == (
        '<span class="x" aria-hidden="aria-hidden" stroke-width="2" x="1.2"></span>'
    )


@pytest.mark.parametrize(
    ("name", "text"), [("br", "<br/>"), ("span", "<span></span>"), ("rect", "<rect/>\n")]
)
def test_only_elements_without_content_have_the_short_form(name: str, text: str) -> None:
    """HTML has no short form of others."""
    assert tag(name) == text


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_words_are_words(text: str) -> None:
    """As content and as an attribute; control characters are written out."""
    element = ElementTree.fromstring(tag("p", text, title=text))
    assert (
        (element.text or "").isprintable()
        or (element.text or "").isspace()
        or max(element.text or "") >= "\u00a0"
    )
    assert element.get("title") == (element.text or "")
    assert len(element) == 0
    if text.isprintable():
        assert (element.text or "") == text


def test_a_users_text_is_isolated() -> None:
    """Its direction ends with it; as code it is that inside."""
    assert foreign("<x>", class_="n") == '<bdi class="n">&lt;x&gt;</bdi>'
    assert foreign("x", code=True, class_="n") == '<code class="n"><bdi>x</bdi></code>'


def test_pieces_are_joined() -> None:
    """Text among them is escaped."""
    joined = join([tag("b", "x"), "<", Markup("<br/>")])
    assert isinstance(joined, Markup)
    assert joined == "<b>x</b>&lt;<br/>"
