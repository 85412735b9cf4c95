"""Steps that the tests of report share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

Run = Callable[..., Any]


def tree(text: str) -> Element:
    """A page, read as strictly as XML is."""
    assert text.startswith("<!DOCTYPE html>\n")
    return ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))


def words(element: Element) -> str:
    """What is written in an element."""
    return " ".join("".join(element.itertext()).split())


def table(page: Element, caption: str) -> list[dict[str, str]]:
    """The rows of a table by its headings."""
    found = []
    for each in page.iter("table"):
        if each.findtext("caption") == caption:
            headings = [words(cell) for cell in each.iter("th")]
            for row in each.iter("tr"):
                cells = [words(cell) for cell in row.iter("td")]
                if cells:
                    found.append(dict(zip(headings, cells, strict=True)))
    return found
