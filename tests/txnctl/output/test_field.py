"""Field: `txnctl/output/field.py`."""

from __future__ import annotations

from storage.admin.change import Changed, OfSubscription
from storage.admin.subscriptions import ConsumersEvicted
from tests.txnctl.output.output_steps import FIELDS, ROWS
from txnctl.output import render
from txnctl.output.field import fields_of, heading_of, undeclared


class TestRendering:
    """Table and JSON come from the same rows."""

    def test_a_table_is_aligned_and_harmless(self) -> None:
        """Numbers to the right, unknown is a dash."""
        assert "".join(render.many(ROWS, "table", FIELDS, "topic", None)) == (
            "TOPIC       MESSAGES     SIZE     AGE  LABELS\n"
            "orders\\x1b     5,688  8.4 MiB  46m58s  a=b\n"
            "b                  -      0 B     0ms  -\n"
        )

    def test_one_thing_is_a_line_a_field(self) -> None:
        """The headings in small letters."""
        assert render.one(ROWS[0], "table", FIELDS, "topic", None) == (
            "topic     orders\\x1b\nmessages  5,688\nsize      8.4 MiB\nage       46m58s\nlabels    a=b\n"
        )

    def test_names_are_alone_on_their_lines(self) -> None:
        """For `xargs`."""
        assert "".join(render.many(ROWS, "name", FIELDS, "topic", None)) == "orders\\x1b\nb\n"

    def test_an_empty_table_is_nothing(self) -> None:
        """No heading over nothing: scripts count lines."""
        assert "".join(render.many([], "table", FIELDS, "topic", None)) == ""

    def test_a_layout_of_its_own_gets_harmless_rows(self) -> None:
        """Text or lines; what it adds itself, such as colours, stays."""
        text = render.one(
            ROWS[0], "table", FIELDS, "topic", lambda row: [f"\x1b[1m{row['topic']}\x1b[0m", "x"]
        )
        assert text == "\x1b[1morders\\x1b\x1b[0m\nx\n"
        assert (
            "".join(render.many(ROWS, "table", FIELDS, "topic", lambda rows: rows[0]["topic"]))
            == "orders\\x1b\n"
        )

    def test_headings_come_from_names(self) -> None:
        """Pulsar's names, readable."""
        assert heading_of("maxReadPosition") == "MAX READ POSITION"
        assert undeclared({"topic": 1, "other": 2}, FIELDS) == {"other"}

    def test_a_parameter_names_the_class_of_a_flat_part(self) -> None:
        """The effects of a change have the fields of the change that the class is given."""
        described = dict.fromkeys(("topic", "subscription", "evicted", "messages_released", "dry_run"), "")
        fields = fields_of(Changed[OfSubscription[ConsumersEvicted]], described)
        assert [(field.name, field.kind) for field in fields] == [
            ("topic", "text"), ("subscription", "text"), ("evicted", "list"), ("messagesReleased", "integer"),
            ("dryRun", "boolean"),
        ]  # fmt: skip
