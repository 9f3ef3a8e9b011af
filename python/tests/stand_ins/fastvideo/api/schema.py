"""Fields of FastVideo's requests, as far as the adapter uses them; fastvideo 0.2.1."""

from dataclasses import dataclass, field


@dataclass
class InputConfig:
    image_path: str | list[str] | None = None


@dataclass
class SamplingConfig:
    seed: int = 1024
    num_frames: int = 125
    height: int = 720
    width: int = 1280
    fps: int = 24
    num_inference_steps: int = 50
    guidance_scale: float = 1.0


@dataclass
class OutputConfig:
    output_path: str = "outputs/"
    save_video: bool = True
    return_frames: bool = True


@dataclass
class GenerationRequest:
    prompt: str | list[str] | None = None
    negative_prompt: str | None = None
    inputs: InputConfig = field(default_factory=InputConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    output: OutputConfig = field(default_factory=OutputConfig)
