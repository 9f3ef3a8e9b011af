"""A job: what to make, the materials for it, and the ways to report."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ._cancel import Cancel
from ._engine import phase_body
from ._errors import Mistake
from ._line import Port
from ._materials import Audio, Picture
from ._outputs import FrameStream, Sound
from ._pixels import frames_of, picture_of
from ._source import Source
from ._stereo import stereo

SIGN_OF_LIFE_SECONDS = 0.5
PREVIEW_MARGIN = 64
"""A preview is at most so many pixels wider and higher than the clip."""


@dataclass(frozen=True)
class Clip:
    """What to make: exactly so many frames of this size, and sound exactly if `audio`."""

    width: int
    height: int
    fps: int
    frames: int | None
    """`None` if the engine decides; see `Job.decide`."""
    audio: bool
    frames_max: int | None = None
    """The longest allowed clip if the engine decides."""

    @property
    def seconds(self) -> float:
        """The clip's length; of an undecided clip, its longest one."""
        return (self.frames or self.frames_max or 0) / self.fps


@dataclass(frozen=True)
class Request:
    """The job's own words and materials."""

    prompt: str
    negative_prompt: str | None
    seed: int
    draft: bool
    final: bool
    strength: float | None
    first_frame: Picture | None
    last_frame: Picture | None
    images: tuple[Picture, ...]
    audios: tuple[Audio, ...]
    preset: dict[str, Any] = field(default_factory=dict)


class Job:
    """One clip to make. Its methods work until the job ends."""

    def __init__(self, request: Request, clip: Clip, source: Source | None, port: Port, cancel: Cancel) -> None:
        self.prompt = request.prompt
        self.negative_prompt = request.negative_prompt
        self.seed = request.seed
        """0 to 2^32 - 1. Equal jobs must give equal frames on the same machine."""
        self.draft = request.draft
        """A quick preview is enough: fewer steps."""
        self.final = request.final
        """The final of a draft, whose video is `source`."""
        self.strength = request.strength
        """Of an edit, 0.0 to 1.0: 0 keeps the source, 1 keeps only its size, length and rhythm. `None`: not an edit."""
        self.first_frame = request.first_frame
        self.last_frame = request.last_frame
        self.images = request.images
        """Reference images."""
        self.audios = request.audios
        """Reference sounds."""
        self.source = source
        """The video to work from, or `None`."""
        self.preset = request.preset
        """The `settings` of the job's model in Kinora's configuration; empty if it has none. They hold for this job alone."""
        self.clip = clip
        self._port = port
        self._cancel = cancel
        self._frames_begun = False

    @property
    def frames(self) -> int:
        """The clip's length in frames.

        Raises:
            Mistake: the length is the engine's to decide, and `decide` was not called.
        """
        if self.clip.frames is None:
            raise Mistake("the clip's length is not decided: call job.decide(frames) first")
        return self.clip.frames

    def rgb(self, frames: Any) -> FrameStream:
        """Frames to `yield`: one, many, or an iterable of them.

        Takes bytes, `Picture`, PIL images, numpy arrays and torch tensors: `[height][width][3]` or `[3][height][width]`, with `[frames]`
        before them for several; uint8, or floats from 0 to 1. Frames are converted as they are sent, one at a time.
        """
        self._frames_begun = True
        return FrameStream(frames_of(frames, self.clip.width, self.clip.height))

    def sound(self, pcm: Any, rate: int, channels: int | None = None) -> Sound:
        """A piece of the clip's sound to `yield`, of any length. Pieces follow each other; the package resamples them to 48 kHz.

        Takes numpy arrays and torch tensors (`[samples]`, `[samples][channels]` or `[channels][samples]`; floats, int16 or int32), bytes of
        32-bit floats, and iterables of floats. One channel is used for both sides. `channels` is what flat data holds: by default 2
        in bytes and 1 in everything else.
        """
        if rate <= 0:
            raise Mistake(f"sound at a rate of {rate}: a positive number is needed")
        return Sound(stereo(pcm, channels), rate)

    def preview(self, image: Any) -> None:
        """Shows what the clip looks like so far: a `Picture`, a PIL image, or an array `[height][width][3]` of any size up to the clip's."""
        picture = picture_of(image)
        if picture.width > self.clip.width + PREVIEW_MARGIN or picture.height > self.clip.height + PREVIEW_MARGIN:
            size = f"{self.clip.width}x{self.clip.height}"
            raise Mistake(f"a preview of {picture.width}x{picture.height} is larger than the clip, which is {size}")
        self._port.send_large(b"v", struct.pack("<II", picture.width, picture.height) + picture.bytes)

    def progress(self, fraction: float) -> None:
        """Reports progress, 0.0 to 1.0. A lower value than before is a sign of life only. The package reports 1.0 at the job's end."""
        if fraction != fraction:
            raise Mistake("the progress is no number")
        self._port.progress(min(1.0, max(0.0, float(fraction))))
        self.check()

    def check(self) -> None:
        """Call this often from where the work is, several times a second if you can: it raises `Cancelled` if Kinora stopped the job.

        It is also the sign that the work goes on, so it sends the progress again if nothing was sent for half a second.
        """
        self._cancel.check()
        self._port.sign_of_life(SIGN_OF_LIFE_SECONDS)

    @property
    def cancelled(self) -> bool:
        """Whether Kinora stopped the job. `check` is shorter, unless several processes must stop at the same place."""
        return self._cancel.asked

    @contextmanager
    def deferred_cancel(self) -> Iterator[None]:
        """Within this, no cancel interrupts your code: neither `check` nor the signal raises `Cancelled`. Look at `cancelled` instead."""
        with self._cancel.deferred():
            yield

    @contextmanager
    def phase(self, name: str, limit_seconds: float) -> Iterator[None]:
        """Declares a part of the work that is silent for up to `limit_seconds`, at most 3,600, such as compiling."""
        self._port.begin_phase(**phase_body(name, limit_seconds))
        try:
            yield
        finally:
            self._port.end_phase()

    def decide(self, frames: int) -> None:
        """Decides the length of a clip whose `frames` is `None`: before its first frame, and once."""
        longest = self.clip.frames_max
        if self.clip.frames is not None or longest is None:
            raise Mistake(f"the clip's length is decided: {self.clip.frames} frames")
        if self._frames_begun:
            raise Mistake("job.decide() comes after job.rgb(); decide before the first frame")
        if not 0 < frames <= longest:
            raise Mistake(f"a clip of {frames} frames: 1 to {longest} are allowed")
        self.clip = replace(self.clip, frames=int(frames))
        self._port.send_json(b"d", {"frames": int(frames)})
