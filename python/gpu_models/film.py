"""What an MP4 has in it, by its boxes (ISO/IEC 14496-12), so that no other program is needed to look."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Film:
    """The picture's size and number of frames, and whether there is sound."""

    width: int
    height: int
    frames: int
    has_sound: bool


def read(content: bytes) -> Film:
    """What the file has.

    Raises:
        ValueError: it is no MP4 with a picture.
    """
    width = height = frames = 0
    has_sound = False
    for name, trak in _boxes(dict(_boxes(content)).get("moov", b"")):
        if name != "trak":
            continue
        media = dict(_boxes(dict(_boxes(trak)).get("mdia", b"")))
        kind = media.get("hdlr", b"")[8:12]
        table = dict(_boxes(dict(_boxes(media.get("minf", b""))).get("stbl", b"")))
        samples = struct.unpack(">I", table.get("stsz", bytes(12))[8:12])[0]
        if kind == b"vide" and len(table.get("stsd", b"")) >= 44:
            # A visual sample entry, after the table's head of 8 bytes and the entry's of 8, has its size at 24.
            width, height = struct.unpack(">HH", table["stsd"][40:44])
            frames = samples
        has_sound = has_sound or (kind == b"soun" and samples > 0)
    if not frames:
        raise ValueError(f"no MP4 with a picture: {len(content)} bytes that begin with {content[:12]!r}")
    return Film(width, height, frames, has_sound)


def _boxes(content: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at + 8 <= len(content):
        size, kind = struct.unpack_from(">I4s", content, at)
        head = 8
        if size == 1 and at + 16 <= len(content):
            (size,), head = struct.unpack_from(">Q", content, at + 8), 16
        if size == 0:
            size = len(content) - at
        if size < head:
            return
        yield kind.decode("latin-1"), content[at + head : at + size]
        at += size
