"""Fields of SGLang's requests, as far as the adapter uses them; sglang 0.5.23."""

from dataclasses import dataclass


@dataclass
class SamplingParams:
    image_path: str | list[str] | None = None
    prompt: str | list[str] | None = None
    negative_prompt: str = "Bright tones"
    output_path: str | None = None
    seed: int | list[int] = 42
    num_frames: int = 1
    height: int | None = None
    width: int | None = None
    fps: int = 24
    num_inference_steps: int | None = None
    guidance_scale: float = 1.0
    save_output: bool = True
    return_frames: bool = False
    adjust_frames: bool = True
    return_file_paths_only: bool = True
