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

PROMPT = "A red balloon drifts over a calm sea at dawn"
POLL_SECONDS = 0.05
"""Long enough that the polls of a clip take little of a processor."""
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


def processor_seconds(pid: int) -> float:
    """What a process and its descendants have taken; those that have ended do not count."""
    ticks = 0
    for one in family(pid):
        try:
            ticks += sum(map(int, Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:13]))
        except OSError:
            pass
    return ticks / os.sysconf("SC_CLK_TCK")


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


def configuration(options: argparse.Namespace, name: str, target: str = "kinora_engine.diffusers:Pipeline", more: str = "") -> str:
    """An engine and a model of this name; `more` are lines of the engine's table."""
    quoted = json.dumps
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    passed = {name: value for name in PASSED if (value := os.environ.get(name))}
    variables = {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1", **passed}
    environment = ", ".join(f"{name} = {quoted(value)}" for name, value in variables.items())
    types = ", ".join(f"{part} = {quoted(value)}" for part, value in dtypes(options).items())
    return f"""
[[engines]]
name = "{name}"
kind = "process"
command = [{quoted(sys.executable)}, "-m", "kinora_engine", {quoted(target)}]
environment = {{ {environment} }}
{more}
[engines.settings]
model = {quoted(str(options.model))}
dtype = {{ {types} }}
torch_device = "{options.device}"
steps = {options.steps}
offload = "{getattr(options, "offload", "none")}"
[engines.describe]
size_multiple = 32
frames = {{ step = 4, offset = 1 }}
fps = {options.fps}
features = {{ text_to_video = true }}
[engines.host]
silence_seconds = 600
memory_megabytes = 200000
[[models]]
id = "{name}"
engine = "{name}"
sizes = {quoted(options.size.split(","))}
seconds = [{options.seconds}]
"""


class Service:
    """A `kinora serve` of its own, and a client of it."""

    def __init__(self, options: argparse.Namespace, folder: str, written: str) -> None:
        self._options = options
        config, data, self.log = (os.path.join(folder, name) for name in ("kinora.toml", "data", "log"))
        Path(config).write_text(written)
        command = [options.kinora, "serve", "--config", config, "--data", data, "--listen", "127.0.0.1:0", "--log-format", "json"]
        self.process = subprocess.Popen(command, stdout=open(self.log, "w"), stderr=subprocess.STDOUT)
        self.base = self._address()
        self.key = Path(data, "first-key").read_text().strip()

    def _address(self) -> str:
        for _ in range(600):
            for line in Path(self.log).read_text().splitlines():
                if '"message":"serving","address":"' in line:
                    return "http://" + str(json.loads(line)["address"])
            assert self.process.poll() is None, Path(self.log).read_text()
            time.sleep(0.1)
        raise TimeoutError(Path(self.log).read_text())

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's JSON."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, json.dumps(body).encode() if body else None, headers, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def submit(self, seed: int, **more: Any) -> str:
        """The new task's id."""
        return str(self.call("POST", "/v1/videos", {"model": "wan", "prompt": PROMPT, "seed": seed, **more})["id"])

    def logged(self, message: str) -> list[dict[str, Any]]:
        """The fields of the log's lines with this message."""
        found = []
        for line in Path(self.log).read_text().splitlines():
            if message in line:
                found.append(json.loads(line))
        return found

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
                raise RuntimeError(json.dumps(video) + Path(self.log).read_text()[-4_000:])
            time.sleep(POLL_SECONDS)

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
def service(options: argparse.Namespace, folder: str, written: str) -> Iterator[Service]:
    """A service that ends with the block."""
    os.environ["KINORA_WORKER_SLOTS"] = "1"
    started = Service(options, folder, written)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()


def through_kinora(options: argparse.Namespace, folder: str) -> dict[str, Any]:
    """The same clips over HTTP."""
    clips = []
    with service(options, folder, configuration(options, "wan")) as kinora:
        peak = Peak(kinora.process.pid)
        for number in range(options.clips + 1):
            begun, spent = time.monotonic(), processor_seconds(kinora.process.pid)
            seen: list[tuple[float, float]] = []
            video = kinora.until(kinora.submit(number), "completed", seen=seen)
            seconds, processor = time.monotonic() - begun, processor_seconds(kinora.process.pid) - spent
            clips.append({"seconds": seconds, "processor": processor, "step": step_seconds(seen)})
            assert video["frames"] == options.seconds * options.fps, video
        peak.stop()
        made = told("through Kinora", kinora.logged("engine opened")[0]["seconds"], clips[1:], peak)
        made["cancel"] = kinora.cancelled_in()
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
