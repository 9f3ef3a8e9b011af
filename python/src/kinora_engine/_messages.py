"""The JSON bodies from Kinora: open and job. Unknown keys are ignored: later versions of the protocol add some."""

import json
from dataclasses import dataclass, field
from typing import Any

from ._job import Clip
from ._source import SourceHead
from ._version import PROTOCOL_MAJOR


class InvalidMessage(Exception):
    """A body does not follow the protocol."""


@dataclass(frozen=True)
class Open:
    """The body of `o`."""

    name: str
    settings: dict[str, Any]
    device: str | None


@dataclass(frozen=True)
class JobHead:
    """The body of `j`: a job without its materials."""

    prompt: str
    negative_prompt: str | None
    seed: int
    draft: bool
    final: bool
    strength: float | None
    clip: Clip
    first_frame: tuple[int, int] | None
    last_frame: tuple[int, int] | None
    images: tuple[tuple[int, int], ...]
    audios: int
    source: SourceHead | None
    preset: dict[str, Any] = field(default_factory=dict)

    @property
    def pictures(self) -> list[tuple[int, int]]:
        """Sizes of the pictures in the order in which they arrive."""
        ends = [size for size in (self.first_frame, self.last_frame) if size is not None]
        return [*ends, *self.images]

    @property
    def materials(self) -> int:
        """Number of `m` messages that follow."""
        return len(self.pictures) + self.audios


def parse_open(body: bytes) -> Open:
    """Parses `o`.

    Raises:
        InvalidMessage: the body is invalid, or of another major version.
    """
    try:
        value = json.loads(body)
        major = value["protocol"]["major"]
        opened = Open(value.get("name") or "", dict(value.get("settings") or {}), value.get("device"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidMessage(f"invalid open message: {error!r}") from error
    if major != PROTOCOL_MAJOR:
        raise InvalidMessage(f"Kinora speaks version {major} of the engine protocol; this package speaks version {PROTOCOL_MAJOR}")
    return opened


def parse_job(body: bytes) -> JobHead:
    """Parses `j`.

    Raises:
        InvalidMessage: the body is invalid.
    """
    try:
        value = json.loads(body)
        edit = value.get("edit")
        return JobHead(
            prompt=value["prompt"],
            negative_prompt=value.get("negative_prompt"),
            seed=int(value["seed"]),
            draft=bool(value.get("draft")),
            final=bool(value.get("final")),
            strength=None if edit is None else float(edit["strength"]),
            clip=_clip(value["clip"]),
            first_frame=_size(value.get("first_frame")),
            last_frame=_size(value.get("last_frame")),
            images=tuple((int(image["width"]), int(image["height"])) for image in value.get("images") or ()),
            audios=int(value.get("audios") or 0),
            source=_source(value.get("source")),
            preset=dict(value.get("preset") or {}),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidMessage(f"invalid job message: {error!r}") from error


def _clip(value: dict[str, Any]) -> Clip:
    frames = value.get("frames")
    longest = value.get("frames_max")
    return Clip(
        width=int(value["width"]),
        height=int(value["height"]),
        fps=int(value["fps"]),
        frames=None if frames is None else int(frames),
        audio=bool(value.get("audio")),
        frames_max=None if longest is None else int(longest),
    )


def _size(value: dict[str, Any] | None) -> tuple[int, int] | None:
    return None if value is None else (int(value["width"]), int(value["height"]))


def _source(value: dict[str, Any] | None) -> SourceHead | None:
    if value is None:
        return None
    return SourceHead(int(value["width"]), int(value["height"]), int(value["fps"]), int(value["frames"]))
