"""SGLang's generator as an engine: `python -m kinora_engine kinora_engine.sglang:Generator`. `_library.py` lists the settings.

Written from the published package sglang 0.5.23 (`multimodal_gen/runtime/entrypoints/diffusion_generator.py`, and
`configs/sample/sampling_params.py` for the fields of requests); never run with it. SGLang starts its own processes, as many as
`arguments.num_gpus` says, in the engine's process group.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ._job import Job
from ._library import Library, Settings, present, saved
from ._outputs import Output


class Generator(Library):
    """Runs `DiffGenerator`."""

    package = "sglang"
    features = frozenset({"text_to_video", "first_frame", "reference_images_max", "audio_output", "negative_prompt"})

    def open(self, settings: Settings) -> Any:
        from sglang.multimodal_gen.runtime.entrypoints.diffusion_generator import DiffGenerator

        return DiffGenerator.from_pretrained(local_mode=True, model_path=settings.model, **settings.arguments)

    def request(self, job: Job, folder: Path) -> dict[str, Any]:
        given = [picture for picture in (job.first_frame, *job.images) if picture is not None]
        images = [saved(picture, folder / f"{number}.png") for number, picture in enumerate(given)]
        fields = {
            "prompt": job.prompt,
            "negative_prompt": job.negative_prompt,
            "seed": job.seed,
            "width": job.clip.width,
            "height": job.clip.height,
            "num_frames": job.frames,
            "fps": job.clip.fps,
            "num_inference_steps": self.settings.steps or None,
            "image_path": images or None,
            "output_path": str(folder),
            "save_output": False,
            "return_frames": True,
            "return_file_paths_only": False,
            # Otherwise the number of frames follows the number of GPUs.
            "adjust_frames": False,
        }
        return {**present(fields), **self.settings.sampling}

    def make(self, request: dict[str, Any]) -> Any:
        return self.generator.generate(sampling_params_kwargs=request)

    def outputs(self, job: Job, result: Any) -> Iterator[Output]:
        # It logs the error of a failed request, and returns nothing.
        if result is None or isinstance(result, list) or result.frames is None:
            raise RuntimeError("SGLang made no video; its lines in the log say why")
        yield job.rgb(result.frames)
        if job.clip.audio:
            if result.audio is None or not self.settings.sound_rate:
                raise RuntimeError("SGLang made no sound, or settings.sound_rate is missing: its results do not say the rate")
            yield job.sound(result.audio, self.settings.sound_rate)
