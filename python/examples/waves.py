"""Moving waves and a humming chord from the seed and the prompt. Needs numpy only.

Command: python -m kinora_engine examples/waves.py:Waves
"""

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kinora_engine import Description, Engine, Features, Job, Output, Picture

Array = npt.NDArray[np.float32]
FIRST_FRAME_SECONDS = 1.0
"""A given first frame fades into the waves for so long."""


class Waves(Engine):
    """Sums of plane waves, one colour channel each. `waves` of the settings, or of a preset, is their number."""

    def describe(self, settings: Mapping[str, Any]) -> Description:
        features = Features(text_to_video=True, first_frame=True, audio_output=True, draft=True, auto_duration=True)
        return Description(features=features, size_multiple=2, version="1", presets=True)

    def load(self, settings: Mapping[str, Any], device: str | None) -> None:
        self.waves = int(settings.get("waves", 12))

    def generate(self, job: Job) -> Iterator[Output]:
        if job.clip.frames is None:
            # A second for each word of the prompt.
            wanted = job.clip.fps * max(2, len(job.prompt.split()))
            job.decide(min(wanted, job.clip.frames_max or wanted))
        noise = np.random.default_rng([job.seed, zlib.crc32(job.prompt.encode())])
        number_of_waves = int(job.preset.get("waves", self.waves))
        waves = noise.uniform(-1.0, 1.0, (number_of_waves, 3, 4)).astype(np.float32)
        waves = waves[: max(1, number_of_waves // 4)] if job.draft else waves
        for number in range(job.frames):
            frame = self.frame(job, waves, number / job.clip.fps)
            yield job.rgb(frame)
            job.progress((number + 1) / job.frames)
        if job.clip.audio:
            yield job.sound(chord(waves, job.clip.seconds), rate=16_000)

    def frame(self, job: Job, waves: Array, seconds: float) -> Array:
        """One frame, `[height][width][3]`, 0.0 to 1.0."""
        y, x = np.mgrid[0 : job.clip.height, 0 : job.clip.width].astype(np.float32) / 32
        frame = np.zeros((job.clip.height, job.clip.width, 3), np.float32)
        for wave in waves:
            job.check()
            for channel, (along, across, phase, speed) in enumerate(wave):
                frame[..., channel] += np.sin(x * along + y * across + phase * 3 + seconds * speed * 6)
        frame = 0.5 + 0.5 * frame / np.sqrt(np.float32(len(waves) * 2))
        if job.first_frame is not None:
            share = np.float32(max(0.0, 1.0 - seconds / FIRST_FRAME_SECONDS))
            frame += share * (stretched(job.first_frame, job.clip.width, job.clip.height) - frame)
        clipped: Array = frame.clip(0.0, 1.0)
        return clipped


def stretched(picture: Picture, width: int, height: int) -> Array:
    """A picture at another size, `[height][width][3]`, 0.0 to 1.0: its nearest pixels."""
    rows = np.arange(height) * picture.height // height
    columns = np.arange(width) * picture.width // width
    pixels: Array = picture.numpy()[rows][:, columns] / np.float32(255)
    return pixels


def chord(waves: Array, seconds: float) -> Array:
    """A quiet chord, `[samples][2]`, 16 kHz."""
    time = np.arange(round(seconds * 16_000), dtype=np.float32) / 16_000
    sound = np.zeros((len(time), 2), np.float32)
    for wave in waves[:4]:
        for side in (0, 1):
            sound[:, side] += np.sin(2 * np.pi * (220 + 110 * wave[side, 0]) * time)
    return (0.05 * sound).astype(np.float32)
