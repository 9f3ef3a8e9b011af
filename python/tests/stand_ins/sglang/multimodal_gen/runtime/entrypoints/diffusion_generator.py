"""A stand-in for SGLang's generator: its signatures, and its way to swallow errors; sglang 0.5.23."""

from array import array
from pathlib import Path
from typing import Any

import stand_in
from sglang.multimodal_gen.configs.sample.sampling_params import SamplingParams
from sglang.multimodal_gen.runtime.entrypoints.utils import GenerationResult


class DiffGenerator:
    def __init__(self, server_args: Any) -> None:
        self.server_args = server_args

    @classmethod
    def from_pretrained(cls, local_mode: bool = True, **kwargs: Any) -> "DiffGenerator":
        return cls(kwargs)

    def generate(
        self,
        sampling_params_kwargs: dict[str, Any] | None = None,
        external_trace_header: dict[str, str] | None = None,
    ) -> GenerationResult | list[GenerationResult] | None:
        params = SamplingParams(**(sampling_params_kwargs or {}))
        print("asked", self.server_args, sampling_params_kwargs, flush=True)
        try:
            images = [Path(path).read_bytes()[:4] for path in params.image_path or []]
            print("images", images, flush=True)
            if params.save_output or not params.return_frames or params.return_file_paths_only:
                return GenerationResult()
            assert isinstance(params.prompt, str) and isinstance(params.seed, int) and params.width and params.height
            frames = stand_in.make(params.prompt, params.width, params.height, params.num_frames, params.seed)
        except Exception as error:
            print(f"Generation failed: {error}", flush=True)
            return None
        rate = 16_000
        return GenerationResult(frames=frames, audio=array("f", [0.25] * (rate * params.num_frames // params.fps)))
