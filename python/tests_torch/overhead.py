"""The same clips by a plain script of diffusers and through Kinora, one after the other on the same machine.

`python overhead.py --kinora BINARY --model FOLDER [--size 832x480] [--seconds 5] [--steps 20] [--clips 2]`. Prints, for
each clip, the seconds from the call (from the submit) to the MP4 and the seconds of a step, and the highest memory of the processes
and of the GPU; then the ratio of the medians. Through Kinora, steps are told by the progress that clients see, in whole per cent.
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
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from kinora_engine.diffusers._hooks import DENOISING_SHARE  # noqa: E402

FPS = 16
PROMPT = "A red balloon drifts over a calm sea at dawn"
PASSED = ("OMP_NUM_THREADS",)
"""Variables that both sides get."""


class Peak:
    """The highest memory, in MiB, of a process with its descendants (resident) and of the whole GPU."""

    def __init__(self, pid: int) -> None:
        self.main = self.gpu = 0.0
        self._pid = pid
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the watch."""
        self._ends.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ends.wait(0.5):
            self.main = max(self.main, sum(map(resident, family(self._pid))))
            self.gpu = max(self.gpu, gpu_used())


def family(pid: int) -> Iterator[int]:
    """The process and its descendants."""
    yield pid
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from family(int(child))
    except OSError:
        pass


def resident(pid: int) -> float:
    """Anonymous memory in MiB: without files, of which weights are mapped ones."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def gpu_used() -> float:
    """Memory in use on the first GPU in MiB; 0 without one."""
    try:
        asked = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        return float(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0])
    except (OSError, subprocess.CalledProcessError):
        return 0.0


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

    pipe = WanPipeline.from_pretrained(options.model, dtype=getattr(torch, options.dtype)).to(options.device)
    pipe.set_progress_bar_config(disable=True)
    width, height = map(int, options.size.split("x"))
    for number in range(options.clips + 1):
        begun = time.monotonic()
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
            num_frames=options.seconds * FPS + 1,
            num_inference_steps=steps,
            generator=torch.Generator("cpu").manual_seed(number),
            callback_on_step_end=done,
        )
        called = time.monotonic()
        written = cv2.VideoWriter(os.path.join(options.folder, "plain.mp4"), cv2.VideoWriter_fourcc(*"mp4v"), FPS, (width, height))
        for frame in made.frames[0]:
            written.write((frame[..., ::-1] * 255).astype(np.uint8))
        written.release()
        print(json.dumps([called - begun, time.monotonic() - begun, step_seconds(seen)]), flush=True)
        assert not np.isnan(made.frames).any(), "the random weights made no numbers"


def by_script(options: argparse.Namespace, folder: str) -> list[float]:
    """Runs `plain` in a process of its own."""
    command = [sys.executable, __file__, *sys.argv[1:], "--folder", folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = Peak(process.pid)
    assert process.stdout is not None
    lines = [json.loads(line) for line in process.stdout]
    peak.stop()
    assert process.wait() == 0
    for call, whole, step in lines[1:]:
        print(f"plain script: {whole:.2f} s, of which the pipeline's call {call:.2f} s; {step:.3f} s a step", flush=True)
    print(f"plain script: {peak.main:.0f} MiB of main memory, {peak.gpu:.0f} MiB of the GPU", flush=True)
    return [whole for _, whole, _ in lines[1:]]


def configuration(options: argparse.Namespace, steps: int, name: str) -> str:
    """An engine and a model of this name."""
    quoted = json.dumps
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    passed = {name: value for name in PASSED if (value := os.environ.get(name))}
    variables = {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1", **passed}
    environment = ", ".join(f"{name} = {quoted(value)}" for name, value in variables.items())
    return f"""
[[engines]]
name = "{name}"
kind = "process"
command = [{quoted(sys.executable)}, "-m", "kinora_engine", "kinora_engine.diffusers:Pipeline"]
environment = {{ {environment} }}
settings = {{ model = {quoted(str(options.model))}, dtype = "{options.dtype}", torch_device = "{options.device}", steps = {steps} }}
[engines.describe]
size_multiple = 16
frames = {{ step = 4, offset = 1 }}
fps = {FPS}
features = {{ text_to_video = true }}
[engines.host]
silence_seconds = 600
memory_megabytes = 200000
[[models]]
id = "{name}"
engine = "{name}"
sizes = ["{options.size}"]
seconds = [{options.seconds}]
"""


class Service:
    """A `kinora serve` of its own, and a client of it."""

    def __init__(self, options: argparse.Namespace, folder: str) -> None:
        self._options = options
        config, data, self._log = (os.path.join(folder, name) for name in ("kinora.toml", "data", "log"))
        Path(config).write_text(configuration(options, options.steps, "wan"))
        command = [options.kinora, "serve", "--config", config, "--data", data, "--listen", "127.0.0.1:0", "--log-format", "json"]
        self.process = subprocess.Popen(command, stdout=open(self._log, "w"), stderr=subprocess.STDOUT)
        self.base = self._address()
        self.key = Path(data, "first-key").read_text().strip()

    def _address(self) -> str:
        for _ in range(600):
            for line in Path(self._log).read_text().splitlines():
                if '"message":"serving","address":"' in line:
                    return "http://" + str(json.loads(line)["address"])
            assert self.process.poll() is None, Path(self._log).read_text()
            time.sleep(0.1)
        raise TimeoutError(Path(self._log).read_text())

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's JSON."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, json.dumps(body).encode() if body else None, headers, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def submit(self, seed: int) -> str:
        """The new task's id."""
        return str(self.call("POST", "/v1/videos", {"model": "wan", "prompt": PROMPT, "seed": seed})["id"])

    def until(self, task: str, *wanted: str, seen: list[tuple[float, float]]) -> Any:
        """Polls until the task has one of these states. Adds to `seen` when the number of steps that were done changed."""
        while True:
            video = self.call("GET", f"/v1/videos/{task}")
            done = video["progress"] / 100 / DENOISING_SHARE * self._options.steps
            if 0 < done <= self._options.steps and (not seen or done > seen[-1][1]):
                seen.append((time.monotonic(), done))
            if video["status"] in wanted:
                return video
            if video["status"] == "failed":
                raise RuntimeError(json.dumps(video) + Path(self._log).read_text()[-4_000:])
            time.sleep(0.01)

    def cancelled_in(self) -> float:
        """Seconds from a cancel in a step until the next task has the engine."""
        stopped = self.submit(98)
        while self.call("GET", f"/v1/videos/{stopped}")["progress"] < 10:
            time.sleep(0.05)
        waiting = self.submit(99)
        begun = time.monotonic()
        self.call("POST", f"/v1/videos/{stopped}/cancel")
        while self.call("GET", f"/v1/videos/{waiting}")["progress"] == 0:
            time.sleep(0.01)
        took = time.monotonic() - begun
        self.call("POST", f"/v1/videos/{waiting}/cancel")
        return took


@contextmanager
def service(options: argparse.Namespace, folder: str) -> Iterator[Service]:
    """A service that ends with the block."""
    os.environ["KINORA_WORKER_SLOTS"] = "1"
    started = Service(options, folder)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()


def through_kinora(options: argparse.Namespace, folder: str) -> list[float]:
    """The same clips over HTTP."""
    seconds = []
    with service(options, folder) as kinora:
        peak = Peak(kinora.process.pid)
        for number in range(options.clips + 1):
            begun = time.monotonic()
            task = kinora.submit(number)
            seen: list[tuple[float, float]] = []
            video = kinora.until(task, "completed", seen=seen)
            seconds.append(time.monotonic() - begun)
            assert video["frames"] == options.seconds * FPS, video
            if number:
                print(f"through Kinora: {seconds[-1]:.2f} s; {step_seconds(seen):.3f} s a step", flush=True)
        peak.stop()
        print(f"through Kinora: {peak.main:.0f} MiB of main memory, {peak.gpu:.0f} MiB of the GPU", flush=True)
        print(f"a cancel in a step: the next task's first step was done after {kinora.cancelled_in():.2f} s", flush=True)
    return seconds[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinora", required=True, help="the binary, a release build")
    parser.add_argument("--model", required=True, type=Path, help="a folder with a Wan pipeline")
    parser.add_argument("--size", default="832x480")
    parser.add_argument("--seconds", default=5, type=int)
    parser.add_argument("--steps", default=20, type=int)
    parser.add_argument("--clips", default=2, type=int)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        plain(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        script = statistics.median(by_script(options, folder))
        kinora = statistics.median(through_kinora(options, folder))
    print(f"ratio {kinora / script:.3f}: {script:.2f} s by the script, {kinora:.2f} s through Kinora")


if __name__ == "__main__":
    main()
