"""A pipeline by a plain script, run by the Python of a card: `python plain.py FILE`, where FILE is JSON with `settings`, `clip` and `clips`.

The pipeline is loaded with the card's settings, is called, and PyAV writes the MP4. Prints a line of JSON for each clip; the
first one is not counted by who reads them.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PROMPT = "A red balloon drifts over a calm sea at dawn"


def main() -> None:
    import torch
    from kinora_engine.diffusers._arguments import call_arguments
    from kinora_engine.diffusers._load import load_pipeline
    from kinora_engine.diffusers._modular import is_modular, result_of
    from kinora_engine.diffusers._settings import Settings

    asked = json.loads(Path(sys.argv[1]).read_text())
    settings = Settings.parse(asked["settings"])
    pipe = load_pipeline(settings)
    for number in range(asked["clips"] + 1):
        begun, spent = time.monotonic(), time.process_time()
        arguments = {**call_arguments(pipe, job(asked["clip"], number), settings), "output_type": "np"}
        result = pipe(**arguments, generator=torch.Generator("cpu").manual_seed(number))
        called = time.monotonic()
        frames = (result_of(result) if is_modular(pipe) else result).frames[0]
        write(frames[: asked["clip"]["kept"]], asked["clip"]["fps"])
        measured = {"seconds": time.monotonic() - begun, "call": called - begun, "processor": time.process_time() - spent}
        print(json.dumps(measured), flush=True)


def job(clip: dict[str, Any], seed: int) -> Any:
    """As much of a job as the arguments of a call follow from."""
    from PIL import Image

    first = SimpleNamespace(pil=lambda: Image.new("RGB", (clip["width"], clip["height"]), (64, 96, 160))) if clip["first_frame"] else None
    shape = SimpleNamespace(width=clip["width"], height=clip["height"], fps=clip["fps"], frames=clip["frames"], audio=clip["sound"])
    nothing = dict.fromkeys(("negative_prompt", "strength", "last_frame", "source"))
    return SimpleNamespace(
        prompt=PROMPT, seed=seed, clip=shape, frames=clip["frames"], first_frame=first, images=[], draft=False, final=False, **nothing
    )


def write(frames: Any, fps: int) -> None:
    """An MP4 with MPEG-4, PyAV's simplest."""
    import av

    with tempfile.NamedTemporaryFile(suffix=".mp4") as file, av.open(file.name, "w") as container:
        stream = container.add_stream("mpeg4", rate=fps)
        stream.height, stream.width = frames.shape[1:3]
        for frame in frames:
            picture = av.VideoFrame.from_ndarray((frame * 255).round().astype("uint8"), format="rgb24")
            container.mux(stream.encode(picture))
        container.mux(stream.encode())


if __name__ == "__main__":
    main()
