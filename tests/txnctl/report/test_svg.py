"""Svg: `txnctl/report/svg.py`."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from tests.txnctl.report_steps import words


class TestPage:
    """What is on it."""

    def test_each_topic_is_drawn_twice(self, report_page: Element) -> None:
        """For wide and for narrow screens; each picture has a name and says in words what it shows."""
        pictures = [each for each in report_page.iter("svg") if each.get("role") == "img"]
        assert [each.get("class") for each in pictures] == ["wide", "narrow"] * 3
        named = {each.get("id"): words(each) for each in report_page.iter() if each.get("id")}
        for picture in pictures:
            title, description = str(picture.get("aria-labelledby")).split()
            assert named[title].startswith("Positions of ")
            assert "READ_COMMITTED reads up to" in named[description]
