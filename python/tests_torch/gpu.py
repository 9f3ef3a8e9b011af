"""What Kinora promises of a GPU, tried on one with random weights: `python gpu.py --kinora BINARY --folder FOLDER [--tiny] [--json FILE] [PARTS]`.

Builds Wan 2.1 1.3B and Wan 2.2 TI2V 5B (`full.py`; tiny ones with `--tiny`) in FOLDER, which takes 27 GB, and then in parts: has the
ready-made settings make the longest clips in the memory of a smaller `card`; `swap`s two models on one device; runs out of `memory`, which
another process holds, also when an engine opens (`unopened`); `cancel`s; `kill`s and poisons the engine; and compares clips of each model
(`5b`, `1.3b`) with a plain script. A part that fails does not stop the others. Without a GPU, which is for trying this script, what needs one is left out.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import overhead
import poison

HERE = Path(__file__).resolve().parent
TARGET = f"{HERE / 'poison.py'}:Poisoned"
CARD_MIB = 24_000
"""What a GPU of 24 GB leaves to programs."""
SHORT_MIB = 300
PATIENCE_SECONDS = 300.0

HOLDER = """
import sys, time, torch
least, is_greedy = int(sys.argv[1]) << 20, len(sys.argv) > 2
held, is_told = [], False
while True:
    size = torch.cuda.mem_get_info()[0] - least
    while size >= 2 << 20:
        try:
            held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
            break
        except torch.OutOfMemoryError:
            size //= 2
    else:
        if not is_told:
            print("held", flush=True)
            is_told = True
        if not is_greedy:
            sys.stdin.read()
        time.sleep(0.005)
"""
"""Holds all of the GPU's memory but so many MiB; a greedy one also what others give back."""


class Holder:
    """A process that holds the GPU's memory within the block."""

    def __init__(self, least_mib: int, *greedy: str) -> None:
        command = [sys.executable, "-c", HOLDER, str(least_mib), *greedy]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> None:
        assert self._process.stdout is not None and self._process.stdout.readline() == "held\n"

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


class Trial:
    """The service that the parts use, with four engines of which one fits the device at a time."""

    def __init__(self, options: argparse.Namespace, kinora: overhead.Service) -> None:
        self.kinora = kinora
        self.has_gpu = options.device == "cuda"
        self.options = options
        self._seed = 0

    def submit(self, model: str, **more: Any) -> str:
        """A task of the smallest size, unless `more` says otherwise."""
        self._seed += 1
        return self.kinora.submit(self._seed, model=model, **{"size": sizes(self.options)[model][0], "seconds": 2, **more})

    def video(self, task: str) -> Any:
        return self.kinora.call("GET", f"/v1/videos/{task}")

    def wait(self, task: str, ready: Callable[[Any], bool]) -> float:
        """Seconds until the task is so."""
        begun = time.monotonic()
        while not ready(video := self.video(task)):
            assert video["status"] != "failed", video
            assert time.monotonic() - begun < PATIENCE_SECONDS, video
            time.sleep(0.01)
        return time.monotonic() - begun

    def end(self, task: str) -> dict[str, Any]:
        """How the task ends, and after how many seconds."""
        begun = time.monotonic()
        while (video := self.video(task))["status"] not in ("completed", "failed"):
            if time.monotonic() - begun > PATIENCE_SECONDS:
                self.kinora.call("POST", f"/v1/videos/{task}/cancel")
                return {"status": "none", "seconds": PATIENCE_SECONDS}
            time.sleep(0.02)
        error = video.get("error") or {}
        return {"status": video["status"], "seconds": time.monotonic() - begun, **({"code": error["code"]} if error else {})}

    def made(self, model: str, **more: Any) -> dict[str, Any]:
        """Makes a clip."""
        ended = self.end(self.submit(model, **more))
        assert ended["status"] == "completed", ended
        return ended

    def engine(self) -> int:
        """The process that was started last."""
        return int(self.kinora.logged("engine process started")[-1]["process_id"])

    def offloads(self) -> int:
        """How often an engine has loaded with more offload."""
        return len([line for line in Path(self.kinora.log).read_text().splitlines() if "once more with" in line])


def sizes(options: argparse.Namespace) -> dict[str, list[str]]:
    if options.tiny:
        return dict.fromkeys(("small", "large", "card-1.3b", "card-5b"), ["256x256", "480x256"])
    return {"small": ["256x256", "832x480"], "large": ["1280x704"], "card-1.3b": ["832x480"], "card-5b": ["1280x704"]}


def card(trial: Trial) -> Any:
    """The longest clips of the ready-made settings, where as much memory is free as on a smaller GPU."""
    found = {}
    for model in ("card-1.3b", "card-5b"):
        offloads = trial.offloads()
        found[model] = {**trial.end(trial.submit(model, seconds=5)), "gpu_mib": overhead.gpu_used(), "more_offload": trial.offloads() - offloads}
    return found


def on_a_card(trial: Trial) -> Any:
    if not trial.has_gpu:
        return card(trial)
    with Holder(CARD_MIB):
        return card(trial)


def swap(trial: Trial) -> Any:
    """Tasks of two models in turn: seconds from the submit to the first step, in which one engine leaves and the other loads."""
    found = []
    for model in ("large", "small"):
        task = trial.submit(model)
        first = trial.wait(task, lambda video: video["progress"] > 0)
        opened = trial.kinora.logged("engine opened")[-1]["seconds"]
        found.append({"model": model, "first_step": first, "opened": opened, **trial.end(task)})
    return found


def memory(trial: Trial) -> Any:
    """A clip that needs more than is free, then one for which nothing suffices, then a small one."""
    size = sizes(trial.options)["small"][1]
    trial.made("small")
    if not trial.has_gpu:
        return None
    offloads = trial.offloads()
    with Holder(SHORT_MIB):
        short = trial.end(trial.submit("small", size=size, seconds=5))
    more, after = trial.offloads() - offloads, trial.made("small")
    with Holder(0, "greedy"):
        nothing = trial.end(trial.submit("small", size=size, seconds=5))
    return {"short": short, "more_offload": more, "after": after, "nothing": nothing, "after all": trial.made("small")}


def unopened(trial: Trial) -> Any:
    """An engine that finds no memory when it opens, then one that does."""
    if not trial.has_gpu:
        return None
    with Holder(0, "greedy"):
        nothing = trial.end(trial.submit("large"))
    return {"nothing": nothing, "after": trial.made("large")}


def cancel(trial: Trial) -> Any:
    """Seconds from a cancel until the next task has the engine, and until its first step is done."""
    size = sizes(trial.options)["small"][1]
    trial.made("small")
    found = {}
    for place, progress in (("step", 10), ("decoder", 90)):
        engine = trial.engine()
        stopped = trial.submit("small", size=size, seconds=5)
        trial.wait(stopped, lambda video: video["progress"] >= progress)
        waiting = trial.submit("small")
        begun = time.monotonic()
        trial.kinora.call("POST", f"/v1/videos/{stopped}/cancel")
        taken = trial.wait(waiting, lambda video: video["status"] != "queued")
        trial.wait(waiting, lambda video: video["progress"] > 0)
        stepped = time.monotonic() - begun
        found[place] = {"taken": taken, "first_step": stepped, "same_process": trial.engine() == engine, "next": trial.end(waiting)}
    return found


def kill(trial: Trial) -> Any:
    """An engine that is killed in a step, then one whose GPU fails: the task runs again."""
    size = sizes(trial.options)["small"][1]
    trial.made("small")
    task = trial.submit("small", size=size)
    trial.wait(task, lambda video: video["progress"] >= 10)
    os.kill(trial.engine(), signal.SIGKILL)
    found = {"killed": trial.end(task), "then": trial.made("small")}
    started = len(trial.kinora.logged("engine process started"))
    found["poisoned"] = trial.end(trial.submit("small", prompt=poison.PROMPT))
    found["poisoned"]["processes"] = len(trial.kinora.logged("engine process started")) - started
    found["then again"] = trial.made("small")
    return found


PARTS = {"card": on_a_card, "swap": swap, "memory": memory, "cancel": cancel, "kill": kill, "unopened": unopened}
"""Those of the service. `card` must be first: nothing may be loaded."""
COMPARED = ("5b", "1.3b")


def build(options: argparse.Namespace) -> None:
    """Builds both pipelines, at the same time."""
    small, large = (options.folder / name for name in ("small", "large"))
    if small.exists():
        return
    script = "tiny.py" if options.tiny else "full.py"
    first = ["wan", small] if options.tiny else ["1.3b", small]
    second = ["wan_ti2v", large] if options.tiny else ["5b", large, small / "text_encoder"]
    running = [subprocess.Popen([sys.executable, HERE / script, *arguments]) for arguments in (first, second)]
    assert [process.wait() for process in running] == [0, 0]


def compared(options: argparse.Namespace, name: str) -> Any:
    """A model by a plain script and through Kinora."""
    shared = {name: getattr(options, name) for name in ("kinora", "device", "dtype", "steps", "clips")} | {"seconds": 2}
    if name == "1.3b":
        size = "256x256" if options.tiny else "832x480"
        return overhead.compare(argparse.Namespace(model=options.folder / "small", size=size, fps=16, vae_dtype="", **shared))
    size = "256x256" if options.tiny else "1280x704"
    return overhead.compare(argparse.Namespace(model=options.folder / "large", size=size, fps=24, vae_dtype="float32", **shared))


def configuration(options: argparse.Namespace) -> str:
    """Four engines on a device that has room for one."""
    written = ['[[devices]]\nname = "gpu0"\nmemory_megabytes = 100000\n']
    shared = {"device": options.device, "dtype": options.dtype}
    offload = "model" if options.device == "cuda" else "none"
    engines = {
        "small": {"model": "small", "fps": 16, "vae_dtype": "", "steps": options.steps // 2, "seconds": "2, 5", "offload": "none"},
        "large": {"model": "large", "fps": 24, "vae_dtype": "", "steps": 4, "seconds": 2, "offload": "none"},
        "card-1.3b": {"model": "small", "fps": 16, "vae_dtype": "float32", "steps": 2, "seconds": 5, "offload": "none"},
        "card-5b": {"model": "large", "fps": 24, "vae_dtype": "float32", "steps": 2, "seconds": 5, "offload": offload},
    }
    for name, settings in engines.items():
        settings = {**settings, "model": options.folder / settings["model"], "size": ",".join(sizes(options)[name])}
        one = argparse.Namespace(**shared, **settings)
        written.append(overhead.configuration(one, name, TARGET, 'device = "gpu0"\nmemory_megabytes = 60000'))
    return "".join(written)


class Found(dict[str, Any]):
    """What was found, by part; kept in a file at once."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(seconds={})
        self._path = path

    def tried(self, name: str, part: Callable[[], Any]) -> None:
        """Runs a part and prints what it found, or why it failed."""
        begun = time.monotonic()
        try:
            self[name] = part()
        except Exception as error:
            traceback.print_exc()
            self[name] = {"failed": repr(error)[:2_000]}
        self["seconds"][name] = time.monotonic() - begun
        print(f"== {name}, {self['seconds'][name]:.1f} s: {json.dumps(self[name])}", flush=True)
        if self._path:
            self._path.write_text(json.dumps(self, indent=1))


def in_a_service(options: argparse.Namespace, found: Found) -> None:
    """The parts that share a service."""
    # What engines write to standard error.
    os.environ["KINORA_LOG_LEVEL"] = "info,kinora_engine_host=debug"
    with tempfile.TemporaryDirectory() as folder, overhead.service(options, folder, configuration(options)) as kinora:
        trial = Trial(options, kinora)
        try:
            for name in filter(PARTS.get, options.parts):
                found.tried(name, lambda part=PARTS[name]: part(trial))  # type: ignore[misc]
        finally:
            if options.json:
                options.json.with_suffix(".log").write_text(Path(kinora.log).read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinora", required=True, help="the binary")
    parser.add_argument("--folder", required=True, type=Path, help="where the pipelines are, or will be")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--steps", default=20, type=int)
    parser.add_argument("--clips", default=2, type=int)
    parser.add_argument("--json", type=Path, help="where to write all that was found; the service's log is put beside it")
    parser.add_argument("parts", nargs="*", default=[*PARTS, *COMPARED])
    options = parser.parse_args()
    found = Found(options.json)
    found.tried("build", lambda: build(options))
    in_a_service(options, found)
    for name in filter(COMPARED.__contains__, options.parts):
        found.tried(name, lambda name=name: compared(options, name))  # type: ignore[misc]


if __name__ == "__main__":
    main()
