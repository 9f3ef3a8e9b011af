"""FastVideo's generator as an engine: `python -m kinora_engine kinora_engine.fastvideo:Generator`. `_library.py` lists the settings.

Written from the published package fastvideo 0.2.1 (`entrypoints/video_generator.py`, and `api/schema.py` for the fields of requests);
never run with it. FastVideo starts its own processes, as many as `arguments.num_gpus` says, in the engine's process group.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ._job import Job
from ._library import Library, Settings, present, saved
from ._outputs import Output


class Generator(Library):
    """Runs `VideoGenerator`."""

    package = "fastvideo"
    features = frozenset({"text_to_video", "first_frame", "audio_output", "negative_prompt"})

    def open(self, settings: Settings) -> Any:
        from fastvideo import VideoGenerator

        return VideoGenerator.from_pretrained(settings.model, **settings.arguments)

    def request(self, job: Job, folder: Path) -> dict[str, Any]:
        sampling = {
            "seed": job.seed,
            "width": job.clip.width,
            "height": job.clip.height,
            "num_frames": job.frames,
            "fps": job.clip.fps,
            "num_inference_steps": self.settings.steps or None,
        }
        request = {
            "prompt": job.prompt,
            "negative_prompt": job.negative_prompt,
            "sampling": {**present(sampling), **self.settings.sampling},
            # It makes the folder even if it saves nothing.
            "output": {"output_path": str(folder), "save_video": False, "return_frames": True},
        }
        if job.first_frame is not None:
            request["inputs"] = {"image_path": saved(job.first_frame, folder / "first.png")}
        return present(request)

    def make(self, request: dict[str, Any]) -> Any:
        return self.generator.generate(request)

    def outputs(self, job: Job, result: Any) -> Iterator[Output]:
        if isinstance(result, list) or result.frames is None:
            raise RuntimeError("FastVideo made no video")
        yield job.rgb(result.frames)
        if job.clip.audio:
            rate = result.audio_sample_rate or self.settings.sound_rate
            if result.audio is None or not rate:
                raise RuntimeError("FastVideo made no sound")
            yield job.sound(result.audio, int(rate))
