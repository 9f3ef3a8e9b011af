"""The same clips by a plain script of diffusers and through Kinora, one after the other on the same machine.

`python overhead.py --kinora BINARY --model FOLDER [--size 832x480] [--seconds 5] [--steps 20] [--clips 2]`. Prints, for
each clip, the seconds from the call (from the submit) to the MP4, the processor seconds and the seconds of a step; then the seconds of loading,
the highest memory of the processes and of the GPU, and the ratios of the medians. Through Kinora, steps are told by the progress that clients see, in whole per cent.
A first short clip of each side is not counted. Both sides make the same frames: the grid of Wan is 4n+1, of which Kinora drops
the last. The script encodes with OpenCV's MPEG-4, which costs less than Kinora's H.264.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from gpu_models.machine import Peak, processor_seconds  # noqa: E402
from gpu_models.service import Service  # noqa: E402
from kinora_engine.diffusers._hooks import DENOISING_SHARE  # noqa: E402

PROMPT = "A red balloon drifts over a calm sea at dawn"
PASSED = ("OMP_NUM_THREADS",)
"""Variables that both sides get."""


def step_seconds(seen: list[tuple[float, float]]) -> float:
    """Seconds of a step, of moments with the number of steps that were done; NaN if fewer than two of them differ."""
    (begun, first), (ended, last) = (seen[0], seen[-1]) if seen else ((0.0, 0.0), (0.0, 0.0))
    return (ended - begun) / (last - first) if last > first else math.nan


def plain(options: argparse.Namespace) -> None:
    """What a person would write: prints the seconds of each clip as a line of JSON."""
    import cv2
    import numpy as np
    import torch
    from diffusers import WanPipeline

    begun = time.monotonic()
    types = {part: getattr(torch, name) for part, name in dtypes(options).items()}
    pipe = WanPipeline.from_pretrained(options.model, dtype=types).to(options.device)
    print(json.dumps(time.monotonic() - begun), flush=True)
    pipe.set_progress_bar_config(disable=True)
    width, height = map(int, options.size.split("x"))
    for number in range(options.clips + 1):
        begun, spent = time.monotonic(), time.process_time()
        steps = options.steps if number else 1
        seen: list[tuple[float, float]] = []

        def done(_pipe: Any, step: int, _timestep: Any, tensors: dict[str, Any], seen: list[tuple[float, float]] = seen) -> dict[str, Any]:
            # Without waiting for the GPU, which would slow the script down: over several steps the two keep the same pace.
            seen.append((time.monotonic(), step + 1))
            return tensors

        made = pipe(
            prompt=PROMPT,
            width=width,
            height=height,
            num_frames=options.seconds * options.fps + 1,
            num_inference_steps=steps,
            generator=torch.Generator("cpu").manual_seed(number),
            callback_on_step_end=done,
        )
        called = time.monotonic()
        written = cv2.VideoWriter(os.path.join(options.folder, "plain.mp4"), cv2.VideoWriter_fourcc(*"mp4v"), options.fps, (width, height))
        for frame in made.frames[0]:
            written.write((frame[..., ::-1] * 255).astype(np.uint8))
        written.release()
        clip = {"seconds": time.monotonic() - begun, "processor": time.process_time() - spent, "step": step_seconds(seen), "call": called - begun}
        print(json.dumps(clip), flush=True)
        assert not np.isnan(made.frames).any(), "the random weights made no numbers"


def dtypes(options: argparse.Namespace) -> dict[str, str]:
    """The types by part."""
    return {"default": options.dtype, "vae": options.vae_dtype or options.dtype}


def by_script(options: argparse.Namespace, folder: str) -> dict[str, Any]:
    """Runs `plain` in a process of its own."""
    command = [sys.executable, __file__, "--kinora", "", "--folder", folder]
    for name in ("model", "size", "seconds", "fps", "steps", "clips", "dtype", "vae_dtype", "device"):
        command += ["--" + name.replace("_", "-"), str(getattr(options, name))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = Peak(process.pid)
    assert process.stdout is not None
    load, _, *clips = [json.loads(line) for line in process.stdout]
    peak.stop()
    assert process.wait() == 0
    return told("plain script", load, clips, peak)


def told(side: str, load: float, clips: list[dict[str, float]], peak: Peak) -> dict[str, Any]:
    """Prints what was measured of one side, and returns its medians."""
    for clip in clips:
        print(f"{side}: " + ", ".join(f"{name} {value:.3f} s" for name, value in clip.items()), flush=True)
    print(f"{side}: loaded in {load:.1f} s, {peak.main:.0f} MiB of main memory, {peak.gpu:.0f} MiB of the GPU", flush=True)
    medians = {name: statistics.median(clip[name] for clip in clips) for name in clips[0]}
    return {**medians, "load": load, "main_mib": peak.main, "gpu_mib": peak.gpu}


def configuration(options: argparse.Namespace) -> str:
    """An engine and a model `wan`."""
    quoted = json.dumps
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    passed = {name: value for name in PASSED if (value := os.environ.get(name))}
    variables = {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1", **passed}
    environment = ", ".join(f"{name} = {quoted(value)}" for name, value in variables.items())
    types = ", ".join(f"{part} = {quoted(value)}" for part, value in dtypes(options).items())
    return f"""
[[engines]]
name = "wan"
kind = "process"
command = [{quoted(sys.executable)}, "-m", "kinora_engine", "kinora_engine.diffusers:Pipeline"]
environment = {{ {environment} }}
[engines.settings]
model = {quoted(str(options.model))}
dtype = {{ {types} }}
torch_device = "{options.device}"
steps = {options.steps}
[engines.describe]
size_multiple = 32
frames = {{ step = 4, offset = 1 }}
fps = {options.fps}
features = {{ text_to_video = true }}
[engines.host]
silence_seconds = 600
memory_megabytes = 200000
[[models]]
id = "wan"
engine = "wan"
sizes = [{quoted(options.size)}]
seconds = [{options.seconds}]
"""


def until_completed(kinora: Service, task: str, steps: int) -> tuple[Any, list[tuple[float, float]]]:
    """The completed task, and the moments at which the number of steps that were done changed."""
    seen: list[tuple[float, float]] = []

    def ready(video: Any) -> bool:
        done = video["progress"] / 100 / DENOISING_SHARE * steps
        if 0 < done <= steps and (not seen or done > seen[-1][1]):
            seen.append((time.monotonic(), done))
        return bool(video["status"] == "completed")

    return kinora.wait(task, ready, math.inf), seen


def submit(kinora: Service, seed: int) -> str:
    """The new task's id."""
    return kinora.submit("wan", prompt=PROMPT, seed=seed)


def cancelled_in(kinora: Service) -> float:
    """Seconds from a cancel in a step until the next task has the engine."""
    stopped = submit(kinora, 98)
    kinora.wait(stopped, lambda video: video["progress"] >= 10, math.inf)
    waiting = submit(kinora, 99)
    begun = time.monotonic()
    kinora.cancel(stopped)
    kinora.wait(waiting, lambda video: video["progress"] > 0, math.inf)
    took = time.monotonic() - begun
    kinora.cancel(waiting)
    return took


def through_kinora(options: argparse.Namespace, folder: str) -> dict[str, Any]:
    """The same clips over HTTP."""
    clips = []
    config = Path(folder, "kinora.toml")
    config.write_text(configuration(options))
    with Service(options.kinora, Path(folder, "data"), Path(folder, "log"), config) as kinora:
        peak = Peak(kinora.process.pid)
        for number in range(options.clips + 1):
            begun, spent = time.monotonic(), processor_seconds(kinora.process.pid)
            video, seen = until_completed(kinora, submit(kinora, number), options.steps)
            seconds, processor = time.monotonic() - begun, processor_seconds(kinora.process.pid) - spent
            clips.append({"seconds": seconds, "processor": processor, "step": step_seconds(seen)})
            assert video["frames"] == options.seconds * options.fps, video
        peak.stop()
        made = told("through Kinora", kinora.logged("engine opened")[0]["seconds"], clips[1:], peak)
        made["cancel"] = cancelled_in(kinora)
        print(f"a cancel in a step: the next task's first step was done after {made['cancel']:.2f} s", flush=True)
    return made


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Both sides, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        script, kinora = by_script(options, folder), through_kinora(options, folder)
    ratios = {name: kinora[name] / script[name] for name in ("seconds", "processor")}
    print(f"ratio {ratios['seconds']:.3f}: {script['seconds']:.2f} s by the script, {kinora['seconds']:.2f} s through Kinora", flush=True)
    print(f"ratio {ratios['processor']:.3f} of processor seconds: {script['processor']:.2f} and {kinora['processor']:.2f}", flush=True)
    return {"script": script, "kinora": kinora, "ratios": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinora", required=True, help="the binary, a release build")
    parser.add_argument("--model", required=True, type=Path, help="a folder with a Wan pipeline")
    parser.add_argument("--size", default="832x480")
    parser.add_argument("--seconds", default=5, type=int)
    parser.add_argument("--steps", default=20, type=int)
    parser.add_argument("--clips", default=2, type=int)
    parser.add_argument("--fps", default=16, type=int)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--vae-dtype", default="", help="of the decoder, if it has another")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        plain(options)
        return
    compare(options)


if __name__ == "__main__":
    main()
