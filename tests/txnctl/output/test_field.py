"""Field: `txnctl/output/field.py`."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import pytest

from storage.json_form import Flat, TimeText, camel_case, to_json
from storage.values.position import Position
from storage.values.txn_id import TxnID
from tests.txnctl.output.output_steps import FIELDS, ROWS
from txnctl import commands, fields as field_lists, output
from txnctl.fields.overview import OVERVIEW
from txnctl.output import render
from txnctl.output.field import Fields, Help, fields_of, heading_of, undeclared

if TYPE_CHECKING:
    from storage.maintenance.table_gc import TableCounts

T = TypeVar("T")


class TestRendering:
    """Table and JSON come from the same rows."""

    def test_a_table_is_aligned_and_harmless(self) -> None:
        """Numbers to the right, unknown is a dash."""
        assert "".join(render.many(ROWS, "table", render.RowForm(FIELDS, "topic"), None)) == (
            "TOPIC       MESSAGES     SIZE     AGE  LABELS\n"
            "orders\\x1b     5,688  8.4 MiB  46m58s  a=b\n"
            "b                  -      0 B     0ms  -\n"
        )

    def test_one_thing_is_a_line_a_field(self) -> None:
        """The headings in small letters."""
        assert render.one(ROWS[0], "table", render.RowForm(FIELDS, "topic"), None) == (
            "topic     orders\\x1b\nmessages  5,688\nsize      8.4 MiB\nage       46m58s\nlabels    a=b\n"
        )

    def test_names_are_alone_on_their_lines(self) -> None:
        """For `xargs`."""
        assert (
            "".join(render.many(ROWS, "name", render.RowForm(FIELDS, "topic", terminal=True), None))
            == "orders\\x1b\nb\n"
        )

    def test_an_empty_table_is_nothing(self) -> None:
        """No heading over nothing: scripts count lines."""
        assert "".join(render.many([], "table", render.RowForm(FIELDS, "topic"), None)) == ""

    def test_a_layout_of_its_own_gets_harmless_rows(self) -> None:
        """Text or lines; what it adds itself, such as colours, stays."""
        text = render.one(
            ROWS[0],
            "table",
            render.RowForm(FIELDS, "topic"),
            lambda row: [f"\x1b[1m{row['topic']}\x1b[0m", "x"],
        )
        assert text == "\x1b[1morders\\x1b\x1b[0m\nx\n"
        assert (
            "".join(
                render.many(ROWS, "table", render.RowForm(FIELDS, "topic"), lambda rows: rows[0]["topic"])
            )
            == "orders\\x1b\n"
        )

    def test_headings_come_from_names(self) -> None:
        """Pulsar's names, readable."""
        assert heading_of("maxReadPosition") == "MAX READ POSITION"
        assert undeclared({"topic": 1, "other": 2}, FIELDS) == {"other"}


class Counts(NamedTuple):
    """A part of a row."""

    messages: int
    size: int


class Stuck(NamedTuple):
    """A row with every kind of field."""

    txn_id: TxnID
    begin_at_ms: int
    age_ms: int
    first_position: Position | None
    counts: Flat[Counts]
    version_ns: int
    orphaned: bool
    topics: list[str]
    key: bytes | None
    blocked_by: Counts | None


class Whole(NamedTuple):
    """A row with a part that only type checkers import."""

    path: str
    counts: Flat[TableCounts]


class Window(NamedTuple):
    """A row with a time in text alone."""

    start_at_ms: TimeText


class Change(NamedTuple, Generic[T]):
    """The effects of a change."""

    effects: Flat[T]
    dry_run: bool


class TestDerivation:
    """Fields follow from the class of the row."""

    def test_names_kinds_and_pairs_follow_from_the_row(self) -> None:
        """A time is a text and an integer; bytes are text or Base64; a part stands in place."""
        derived = fields_of(
            Stuck,
            {
                "txn_id": Help("Id.", heading="TXN"),
                "begin_at_ms": "When it began.",
                "age_ms": "Age.",
                "first_position": "First.",
                "messages": "Messages.",
                "size": Help("Bytes.", kind="size"),
                "version_ns": "Version.",
                "orphaned": "Dead.",
                "topics": "Topics.",
                "key": Help("Key.", base64="Key, not UTF-8."),
                "blocked_by": "Blocker.",
            },
        )
        fields = tuple(derived)
        assert [(field.name, field.kind) for field in fields] == [
            ("txnId", "id"), ("beginAt", "time"), ("beginMs", "timeMs"), ("ageMs", "duration"),
            ("firstPosition", "position"), ("messages", "integer"), ("size", "size"), ("version", "id"),
            ("orphaned", "boolean"), ("topics", "list"), ("key", "text"), ("keyBase64", "text"),
            ("blockedBy", "map"),
        ]  # fmt: skip
        assert [field.heading for field in fields[:3]] == ["TXN", "BEGIN AT", ""]
        assert [field.help for field in fields[10:12]] == ["Key.", "Key, not UTF-8."]
        row = Stuck(TxnID(1), 0, 1, None, Counts(1, 2), 3, False, [], b"\xff", None)
        assert not undeclared(to_json(row), fields)

    def test_a_time_in_text_alone_is_one_field(self) -> None:
        """No integer stands beside the text; a description may name another kind."""
        for described, kind in (("From.", "time"), (Help("From.", kind="text"), "text")):
            (field,) = fields_of(Window, {"start_at_ms": described})
            assert (field.name, field.kind) == ("start", kind)

    def test_effects_of_a_change_stand_beside_the_dry_run(self) -> None:
        """The parameter of the class names the effects."""
        described = {"dry_run": "Plan.", "size": "Bytes.", "messages": "Messages."}
        assert [field.name for field in fields_of(Change[Counts], described)] == [
            "dryRun",
            "size",
            "messages",
        ]

    @pytest.mark.parametrize("described", [{"messages": "M."}, {"messages": "M.", "size": "S.", "age": "A."}])
    def test_every_field_is_described_and_no_other(self, described: dict[str, str]) -> None:
        """A row cannot gain a field that the help keeps quiet about."""
        with pytest.raises(AssertionError):
            tuple(fields_of(Counts, described))

    def test_a_reference_names_a_row_of_a_module_that_is_not_loaded(self) -> None:
        """The module is loaded on use; brackets hold the parameter of a generic row."""
        program = (
            "import sys\n"
            "from txnctl.output.field import Help, fields_of\n"
            "described = {'topic': 'T.', 'messages': 'M.', 'bytes': 'B.', 'compacted_messages': 'C.', 'subscriptions': 'S.', 'dry_run': 'D.',\n"
            "    'consumers_evicted': 'C.', 'producers_evicted': 'P.', 'transactions_aborted': 'A.'}\n"
            "fields = fields_of('storage.admin.topics:Changed[TopicDeleted]', described)\n"
            "assert 'storage.admin' not in sys.modules\n"
            "print(*[field.name for field in fields])\n"
        )
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert run.stdout.split() == [
            "topic", "messages", "bytes", "compactedMessages", "subscriptions", "dryRun",
            "consumersEvicted", "producersEvicted", "transactionsAborted",
        ]  # fmt: skip

    def test_a_reference_names_the_part_of_a_row(self) -> None:
        """The module of the row has no such class."""
        parts = ("intents_finalized", "versions_removed", "tombstones_removed", "outcomes_removed")
        described = {"path": "P.", **dict.fromkeys(parts, "C.")}
        fields = fields_of(Whole, described, part="storage.maintenance.table_gc:TableCounts")
        assert [field.name for field in fields] == ["path", *map(camel_case, parts)]
        with pytest.raises(KeyError):
            tuple(fields_of(Whole, described))


class TestDeclaredFields:
    """All fields of the command line."""

    def test_every_field_of_every_result_is_described(self) -> None:
        """The fields that no command declares as output too."""
        modules = [
            import_module(module.name)
            for package in (commands, field_lists, output)
            for module in walk_packages(package.__path__, f"{package.__name__}.")
        ]
        declared = {
            value for module in modules for value in vars(module).values() if isinstance(value, Fields)
        }
        assert OVERVIEW in declared
        for fields in declared:
            assert list(fields)
