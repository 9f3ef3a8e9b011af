"""A stand-in for FastVideo's generator: its signatures, and its strict requests; fastvideo 0.2.1."""

from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import stand_in
from fastvideo.api.results import GenerationResult
from fastvideo.api.schema import GenerationRequest, InputConfig, OutputConfig, SamplingConfig


class VideoGenerator:
    def __init__(self, model: Any, arguments: dict[str, Any]) -> None:
        self.opened = (model, arguments)

    @classmethod
    def from_pretrained(cls, model_path: Any = None, **kwargs: Any) -> "VideoGenerator":
        return cls(model_path, kwargs)

    def generate(self, request: Any, *, log_queue: Any = None) -> GenerationResult | list[GenerationResult]:
        print("asked", self.opened, request, flush=True)
        parsed = parse(request)
        if isinstance(parsed.inputs.image_path, str):
            print("image", Path(parsed.inputs.image_path).read_bytes()[:4], flush=True)
        Path(parsed.output.output_path, "made").touch()
        sampling = parsed.sampling
        assert isinstance(parsed.prompt, str) and parsed.output.return_frames and not parsed.output.save_video
        frames = stand_in.make(parsed.prompt, sampling.width, sampling.height, sampling.num_frames, sampling.seed)
        rate = 24_000
        sound = array("f", [0.25] * (rate * sampling.num_frames // sampling.fps))
        return GenerationResult(frames=frames, audio=sound, audio_sample_rate=rate)


def parse(request: Mapping[str, Any]) -> GenerationRequest:
    """Refuses unknown fields, as the real parser does."""
    raw = dict(request)
    parts = {"inputs": InputConfig, "sampling": SamplingConfig, "output": OutputConfig}
    return GenerationRequest(**{key: parts[key](**value) if key in parts else value for key, value in raw.items()})
