"""The manifest of offloaded ledgers: pure, so without Spark and without files."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from storage.errors import OffloadInvalid, UnknownFormat
from txnctl.spark.ledger_files.layout import RangeFile
from txnctl.spark.ledger_files.manifest import (
    FileContent,
    LedgerFile,
    Manifest,
    OffloadedLedger,
    TopicIdentity,
    cover,
)
from txnctl.spark.ledger_files.root import Root

IDENTITY = TopicIdentity("00ff-1", 7, "persistent://public/default/orders")
CONTENT = FileContent(rows=30, aborted=10, row_groups=1, size=1234, sha256="ab" * 32)


def ledger(number: int, entries: int = 5) -> OffloadedLedger:
    return OffloadedLedger(number, entries, 10 * entries, 1_700_000_000_000 + number)


def file_of(*numbers: int, name: str = "") -> LedgerFile:
    return LedgerFile(name or f"{numbers[0]}-{numbers[-1]}-x.parquet", CONTENT, tuple(map(ledger, numbers)))


def test_a_manifest_reads_back_as_it_was_written():
    """Encoding and decoding loses nothing, and each file has a line of its own."""
    manifest = Manifest(IDENTITY, (file_of(1, 2), file_of(3)))
    data = manifest.encode()
    assert Manifest.decode(data, "here") == manifest
    assert len(data.decode().splitlines()) == 4


def test_an_empty_manifest_reads_back():
    """A topic of which nothing is offloaded has a manifest as well."""
    assert Manifest.decode(Manifest(IDENTITY).encode(), "here") == Manifest(IDENTITY)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"format": 1}', b'{"format": 1, "files": 3}', b"\xff"])
def test_what_is_no_manifest_is_said_to_be_none(data: bytes):
    """The error names the file and what to do."""
    with pytest.raises(OffloadInvalid, match=r"^here is not a manifest") as caught:
        Manifest.decode(data, "here")
    assert caught.value.hint


def test_a_manifest_of_a_later_release_is_left_alone():
    """An unknown format number is an error of its own."""
    with pytest.raises(UnknownFormat, match="format 2"):
        Manifest.decode(b'{"format": 2}', "here")


def test_files_stand_in_the_order_of_their_ledgers():
    """Whichever file was finished first."""
    manifest = Manifest(IDENTITY).with_file(file_of(3, 4)).with_file(file_of(1, 2))
    assert [each.ledgers[0].ledger_id for each in manifest.files] == [1, 3]


def test_a_ledger_that_is_named_is_not_named_again():
    """Of two files with the same ledger the first one stays, and nothing changes."""
    manifest = Manifest(IDENTITY).with_file(file_of(1, 2, name="first"))
    assert manifest.with_file(file_of(2, 3, name="second")) is manifest


def test_the_ends_of_neighbouring_files_meet():
    """The end of a file is written as the beginning of the next one: no gap is seen where there is none."""
    one, two = file_of(1, 2), file_of(3)
    assert one.through == two.after == (3, -1)
    assert one.last == (2, 4)
    assert cover((1, -1), (3, 4), [one, two]) == [(one, ((1, -1), (3, -1))), (two, ((3, -1), (3, 4)))]


def test_what_no_file_holds_is_a_stretch_of_its_own():
    """Gaps before, between and after the files are found."""
    one, two = file_of(2), file_of(4)
    stretches = cover((1, -1), (5, 3), [one, two])
    assert [(None if file is None else file.name[0], *span) for file, span in stretches] == [
        (None, (1, -1), (2, -1)),
        ("2", (2, -1), (3, -1)),
        (None, (3, -1), (4, -1)),
        ("4", (4, -1), (5, -1)),
        (None, (5, -1), (5, 3)),
    ]


def test_a_file_is_not_opened_for_entries_that_it_has_not():
    """A read that begins after the last entry of a file leaves the file out."""
    one, two = file_of(1), file_of(2)
    assert [file for file, _ in cover((1, 4), (2, 2), [one, two])] == [None, two]


POSITIONS = st.tuples(st.integers(1, 4), st.integers(-1, 4))


@st.composite
def range_files(draw: st.DrawFn) -> RangeFile:
    after, through = sorted(draw(st.tuples(POSITIONS, POSITIONS)))
    return RangeFile("name", after, through, 1, 0, 1)


@given(POSITIONS, POSITIONS, st.lists(range_files(), max_size=6))
def test_stretches_join_without_gap_or_overlap(after, through, files):
    """Whatever files there are, a range is read exactly once, and from files that hold what is read of them."""
    at = after
    for file, (start, end) in cover(after, through, files):
        assert start == at < end <= through
        assert file is None or (file.after <= start and end <= file.through)
        if file is None:
            assert not any(each.after <= start < each.last for each in files)
        at = end
    assert at == max(after, through) or (at == after and after >= through)


def test_the_name_of_a_range_says_what_is_in_it():
    """Planning lists the directory and opens no file."""
    file = RangeFile.of_export((3, -1), (4, 17), CONTENT)
    assert RangeFile.parse(file.name) == file
    assert (file.after, file.through, file.rows, file.aborted, file.row_groups) == (
        (3, -1),
        (4, 17),
        30,
        10,
        1,
    )


@pytest.mark.parametrize("name", ["", "x.parquet", "1.2_3.4_5.parquet", "a.b_c.d_e_f_g_h.parquet", ".crc"])
def test_a_file_of_somebody_else_is_no_range(name: str):
    """What lies in the directory under another kind of name is passed over."""
    assert RangeFile.parse(name) is None


@pytest.mark.parametrize(
    ("given_root", "address"),
    [
        ("s3://bucket/some/place?region=eu-1", "s3a://bucket/some/place/a/b"),
        ("gs://bucket", "gs://bucket/a/b"),
        ("hdfs://host:9000/x/", "hdfs://host:9000/x/a/b"),
        ("/a place/of files", "file:///a place/of files/a/b"),
    ],
)
def test_spark_is_told_addresses_in_its_own_way(given_root: str, address: str):
    """S3 is s3a there, parameters of PyArrow are left out, and blanks stand as they are."""
    assert Root.of_path(given_root).for_spark("a/b") == address


@pytest.mark.parametrize(
    ("files", "ledgers", "entries", "messages", "megabytes"),
    [(3_800, 1, 2_632, 2_631_579, 1.1), (7_400, 27, 50_000, 50_000, 9.6)],
)
def test_the_manifest_of_ten_billion_messages_is_as_large_as_the_documents_say(
    files: int, ledgers: int, entries: int, messages: int, megabytes: float
):
    """docs/SCALE.md calculates with these numbers; a plan over all of them has a stretch for each file."""
    content = FileContent(messages * ledgers, messages * ledgers // 10, 20, 268_000_000, "ab" * 32)
    found = []
    for number in range(files):
        numbers = range(1 + number * ledgers, 1 + (number + 1) * ledgers)
        held = tuple(OffloadedLedger(each, entries, messages, 1_795_331_440_280) for each in numbers)
        found.append(LedgerFile(f"{numbers[0]}-{numbers[-1]}-0123456789ab.parquet", content, held))
    manifest = Manifest(
        TopicIdentity("0" * 32 + "-1", 7, "persistent://public/default/requests"), tuple(found)
    )
    assert round(sum(file.rows for file in found) / 1e9) == 10
    assert round(len(manifest.encode()) / 1e6, 1) == megabytes
    assert [file for file, _ in cover((1, -1), found[-1].last, found)] == found
