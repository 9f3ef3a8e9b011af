"""The video to work from. Kinora has its frames, and sends each one when the engine asks for it."""

import queue
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ._cancel import Cancel
from ._line import Port
from ._materials import Picture

PLAYS_MAX = 16
PLAYING_MAX = 4
_ANSWER_POLL_SECONDS = 0.1

Answers: TypeAlias = "queue.SimpleQueue[tuple[bytes, bytes]]"


@dataclass(frozen=True)
class SourceHead:
    """Size and length of a source."""

    width: int
    height: int
    fps: int
    frames: int


class Source:
    """A video. Each `for picture in source` plays it from its beginning.

    A source can be played 16 times in a job, 4 of them at a time; `zip(source, source)` plays it twice at a time.
    """

    def __init__(self, head: SourceHead, port: Port, cancel: Cancel, answers: Answers) -> None:
        self.width = head.width
        self.height = head.height
        self.fps = head.fps
        self.frames = head.frames
        self._port = port
        self._cancel = cancel
        self._answers = answers
        self._asking = threading.Lock()
        self._plays = 0
        self._playing = 0

    def __len__(self) -> int:
        return self.frames

    def __iter__(self) -> Iterator[Picture]:
        """Plays the source.

        Raises:
            RuntimeError: it is played too often, or Kinora cannot read it.
        """
        if self._plays == PLAYS_MAX:
            raise RuntimeError(f"the source was played {PLAYS_MAX} times in this job; keep its frames instead")
        if self._playing == PLAYING_MAX:
            raise RuntimeError(f"the source plays {PLAYING_MAX} times at once; close a playing one first")
        number = struct.pack("<I", self._plays)
        self._plays += 1
        self._playing += 1
        try:
            self._port.send(b"s", number)
            while (picture := self._next(number)) is not None:
                yield picture
        finally:
            self._playing -= 1
            self._port.send(b"c", number)

    def _next(self, number: bytes) -> Picture | None:
        with self._asking:
            self._cancel.check()
            self._port.send(b"n", number)
            kind, body = self._answer()
        if kind == b"n":
            return None
        if kind == b"u":
            raise RuntimeError("Kinora cannot read the source")
        if len(body) != self.width * self.height * 3:
            raise RuntimeError(f"Kinora sent {len(body)} bytes for a frame of {self.width}x{self.height}")
        return Picture(self.width, self.height, body)

    def _answer(self) -> tuple[bytes, bytes]:
        while True:
            try:
                return self._answers.get(timeout=_ANSWER_POLL_SECONDS)
            except queue.Empty:
                self._cancel.check()
