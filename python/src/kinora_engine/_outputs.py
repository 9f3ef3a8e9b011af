"""What `Engine.generate` yields."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Frame:
    """One frame: `[height][width][3]`, 8 bits, sRGB, full range."""

    data: bytes


@dataclass(frozen=True)
class Sound:
    """A piece of sound: 32-bit floats, interleaved left and right."""

    data: bytes
    rate: int


class FrameStream:
    """Frames that are converted one by one as they are sent: `yield` the stream, or `yield from` it."""

    def __init__(self, frames: Iterator[bytes]) -> None:
        self._frames = frames

    def __iter__(self) -> Iterator[Frame]:
        return map(Frame, self._frames)


Output: TypeAlias = Frame | FrameStream | Sound | None
"""`None` is a point at which a cancel takes effect: `yield job.progress(0.5)` is such a point."""
