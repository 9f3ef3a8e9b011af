"""Framing: one byte of kind, the body's length as an unsigned 32-bit little-endian integer, the body.

Source: docs/engine-protocol.md, "Framing". This module knows nothing about the meaning of kinds.
"""

import os
import struct
from typing import BinaryIO

HEAD = struct.Struct("<cI")
BODY_BYTES_MAX = 268_435_456
"""Maximum body from Kinora."""
SMALL_BYTES_MAX = 65_536
"""Maximum body to Kinora, except frames, sound and previews."""


class WireError(Exception):
    """The stream is torn, or a body is over the limit."""


def read_message(stream: BinaryIO) -> tuple[bytes, bytes] | None:
    """The next message as kind and body, or `None` at the end of the stream.

    Raises:
        WireError: the stream ends inside a message, or the body is over `BODY_BYTES_MAX`.
    """
    head = _read(stream, HEAD.size)
    if not head:
        return None
    if len(head) < HEAD.size:
        raise WireError("the stream ended inside the head of a message")
    kind, length = HEAD.unpack(head)
    if length > BODY_BYTES_MAX:
        raise WireError(f"a body of {length} bytes is over the limit of {BODY_BYTES_MAX}")
    body = _read(stream, length)
    if len(body) < length:
        raise WireError(f"the stream ended after {len(body)} of {length} bytes of a body")
    return kind, body


def write_message(descriptor: int, kind: bytes, body: bytes | memoryview) -> None:
    """Writes a whole message. The head and the body are not joined first: frames are large."""
    head = memoryview(HEAD.pack(kind, len(body)))
    parts = [head, memoryview(body)] if len(body) else [head]
    while parts:
        written = os.writev(descriptor, parts)
        while parts and written >= len(parts[0]):
            written -= len(parts.pop(0))
        if parts:
            parts[0] = parts[0][written:]


def _read(stream: BinaryIO, length: int) -> bytes:
    """Up to `length` bytes; fewer only at the end of the stream."""
    data = stream.read(length)
    if len(data) == length or not data:
        return data
    rest = [data]
    missing = length - len(data)
    while missing and (data := stream.read(missing)):
        rest.append(data)
        missing -= len(data)
    return b"".join(rest)
