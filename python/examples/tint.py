"""Tints a video: an edit, frame by frame, in constant memory. Needs numpy only.

Command: python -m kinora_engine examples/tint.py:Tint
"""

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kinora_engine import Description, Engine, Features, Job, Output, Unsupported


class Tint(Engine):
    """Mixes each pixel's brightness, in one colour, into the pixel. The prompt and the seed choose the colour."""

    def describe(self, settings: Mapping[str, Any]) -> Description:
        return Description(features=Features(edit=True), size_multiple=2, version="1")

    def generate(self, job: Job) -> Iterator[Output]:
        if job.source is None or job.strength is None:
            raise Unsupported("this engine only edits videos")
        if (job.source.width, job.source.height) != (job.clip.width, job.clip.height):
            raise Unsupported("the source has another size than the clip")
        noise = np.random.default_rng([job.seed, zlib.crc32(job.prompt.encode())])
        colour = noise.uniform(0.2, 1.0, 3).astype(np.float32)
        for number, picture in enumerate(job.source):
            if number == job.frames:
                break
            pixels = picture.numpy().astype(np.float32) / 255
            tinted = pixels.mean(axis=2, keepdims=True) * colour
            yield job.rgb(pixels + np.float32(job.strength) * (tinted - pixels))
            job.progress((number + 1) / job.frames)
