"""The picture of the README is the report of the demo's store, made by one command."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from tests.docs.picture import HEIGHT, ROOT, WIDTH, make_picture

PICTURE = ROOT / "docs" / "images" / "report.png"


def size_of(picture: Path) -> tuple[int, int]:
    """Width and height that the header of a PNG names."""
    data = picture.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def bytes_of_pixels(picture: Path) -> bytes:
    """The filtered scan lines of a PNG: a blank picture repeats one byte."""
    data, at, packed = picture.read_bytes(), 8, b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    return zlib.decompress(packed)


@pytest.mark.needs_program("chromium")
def test_the_picture_can_be_made_anew(tmp_path: Path) -> None:
    """One call plays the demo, leaves a transfer open and draws the report: a picture of that size, not blank."""
    picture = tmp_path / "report.png"
    make_picture(tmp_path, picture)
    assert size_of(picture) == (WIDTH, HEIGHT)
    assert len(set(bytes_of_pixels(picture))) > 100


def test_the_picture_of_the_readme_is_one_of_these() -> None:
    """README shows a picture that is there, of the size that the command makes, with a text for those who cannot see it."""
    assert "](docs/images/report.png)" in (ROOT / "README.md").read_text()
    assert "![](" not in (ROOT / "README.md").read_text()
    assert size_of(PICTURE) == (WIDTH, HEIGHT)
