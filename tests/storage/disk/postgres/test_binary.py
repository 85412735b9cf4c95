"""Parameters in binary form are what the server takes them for."""

from __future__ import annotations

from storage.disk.postgres import binary
from storage.disk.postgres.session import Session, Statement

ECHO: Statement = (
    b"echo",
    b"SELECT $1::int8 + 1, $2::int4 - 1, cardinality($3::bytea[]), ($3::bytea[])[2], $4::bool",
)
SUMS: Statement = (
    b"sums",
    b"SELECT (SELECT sum(n)::int8 FROM unnest($1::int8[]) n), (SELECT sum(n)::int8 FROM unnest($2::int4[]) n)",
)


def test_the_server_reads_each_kind(session: Session) -> None:
    """Numbers of both widths, negative ones too, byte strings with zeros, truth."""
    array = binary.bytea_array([b"", b"\0\xff", b"x" * 300])
    ((row,),) = session.run_steps(
        ((ECHO, (binary.int8(-(1 << 62)), binary.int4(-7), array, binary.as_bytes(True))),)
    )
    assert binary.as_int(row[0]) == -(1 << 62) + 1
    assert binary.as_int(row[1]) == -8
    assert (binary.as_int(row[2]), row[3], binary.as_bool(row[4])) == (3, b"\0\xff", True)


def test_arrays_of_numbers_keep_their_signs(session: Session) -> None:
    """Sums over both widths; an empty array sums to null, which reads as 0."""
    arrays = binary.int8_array([1 << 40, -1]), binary.int4_array([-3, 5])
    ((row,),) = session.run_steps(((SUMS, arrays),))
    assert list(map(binary.as_int, row)) == [(1 << 40) - 1, 2]
    ((row,),) = session.run_steps(((SUMS, (binary.int8_array([]), binary.int4_array([]))),))
    assert row == (None, None)
    assert binary.as_int(row[0]) == 0
