"""What an engine says about itself: the body of hello."""

from dataclasses import asdict, dataclass, field
from typing import Any

from ._version import PROTOCOL_MAJOR, PROTOCOL_MINOR, sdk_name

YIELD_SECONDS_MAX = 30.0


@dataclass(frozen=True)
class Features:
    """Requests that the engine can take. Kinora never sends a job that needs a feature which is off."""

    text_to_video: bool = False
    first_frame: bool = False
    last_frame: bool = False
    reference_images_max: int = 0
    reference_audios_max: int = 0
    audio_output: bool = False
    auto_duration: bool = False
    negative_prompt: bool = False
    draft: bool = False
    edit: bool = False


@dataclass(frozen=True)
class Frames:
    """A clip has `step * n + offset` frames."""

    step: int = 1
    offset: int = 0

    def allow(self, frames: int) -> bool:
        """Whether a clip can have so many frames."""
        return frames > 0 and frames % self.step == self.offset % self.step and frames >= self.offset


@dataclass(frozen=True)
class Description:
    """The result of `Engine.describe`. The defaults are those of the protocol.

    Raises:
        ValueError: a number is out of its bounds.
    """

    features: Features = field(default_factory=Features)
    size_multiple: int = 1
    """Width and height of every clip are multiples of this."""
    frames: Frames = field(default_factory=Frames)
    fps: int = 0
    """Frames per second of the model; 0: the engine takes any."""
    name: str = ""
    """Empty: the name of the engine's class."""
    version: str = ""
    yield_seconds: float = 1.5
    """Longest time from a cancel to the end of its job, `Engine.reset` included."""
    presets: bool = False
    """Whether the engine obeys `Job.preset`, the settings of the job's model."""

    def __post_init__(self) -> None:
        if self.size_multiple < 1:
            raise ValueError(f"size_multiple is {self.size_multiple}; it must be 1 or more")
        if self.frames.step < 1 or self.frames.offset < 0:
            raise ValueError("frames.step must be 1 or more, and frames.offset 0 or more")
        if self.fps < 0:
            raise ValueError(f"fps is {self.fps}; it must be 0 or more")
        if not 0 < self.yield_seconds <= YIELD_SECONDS_MAX:
            raise ValueError(f"yield_seconds is {self.yield_seconds}; it must be over 0 and at most {YIELD_SECONDS_MAX:g}")


def hello(description: Description, class_name: str) -> dict[str, Any]:
    """The body of `h`."""
    return {
        "protocol": {"major": PROTOCOL_MAJOR, "minor": PROTOCOL_MINOR},
        "sdk": sdk_name(),
        "engine": {"name": description.name or class_name, "version": description.version},
        "features": asdict(description.features),
        "size_multiple": description.size_multiple,
        "frames": asdict(description.frames),
        "fps": description.fps,
        "yield_seconds": description.yield_seconds,
        "presets": description.presets,
    }
