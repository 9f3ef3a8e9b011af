"""Every model of the catalogue that fits this machine, or those that are named, once: `./gpu-models [OPTIONS] [MODEL...]`.

Of each model: `kinora models add`, then over HTTP a first clip and the same again, a cancel in a step and in the decoder, an engine that
is killed, memory that another process holds, a swap with a second model, a GPU that fails, and the same clips by a plain script. A
step that fails is recorded with its reason, and the next one runs. The exit status is 0 only if none failed.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from . import cards, report, steps
from .machine import MemoryHolder, Peak, gpus
from .service import Service
from .sources import Catalogue, RandomWeights, Source, StandIns

PYTHON = Path(__file__).resolve().parent.parent
DOCUMENT = PYTHON.parent / "docs" / "models.md"
SHARED_MEGABYTES = 100_000
"""What the device of two engines is said to have; each says that it needs more than half of it."""


class Run:
    """One model: its steps, kept in a file as soon as each has ended."""

    def __init__(self, options: argparse.Namespace, source: Source, name: str, machine: Mapping[str, Any]) -> None:
        self.name = name
        self._options = options
        self._source = source
        self._folder: Path = options.out / name
        self._folder.mkdir(parents=True, exist_ok=True)
        self._steps: dict[str, Any] = {}
        self.result: dict[str, Any] = {"model": name, "source": source.label, "engine": "", "machine": machine, "steps": self._steps}

    def all(self, previous: cards.Card | None) -> cards.Card | None:
        """Runs the steps. The card if the model could be added; a model that was added before is the other one of the swap."""
        self._record("add", lambda: self._source.add(self.name, self._folder / "add.log"))
        if "failed" in self._steps["add"]:
            return None
        card = self._source.card(self.name)
        self.result["engine"] = cards.how(card)
        self._in_a_service("alone", steps.ALONE, card, card, self._source.config(self.name))
        other = previous or cards.renamed(card, f"{self.name}-twin")
        self._in_a_service("shared", steps.SHARED, card, other, self._shared(card, other))
        if self._wants("ratio"):
            self._record("ratio", lambda: self._ratio(card))
        return card

    def _wants(self, step: str) -> bool:
        return not self._options.steps or step in self._options.steps

    def _record(self, name: str, step: Callable[[], Mapping[str, Any]]) -> None:
        begun = time.monotonic()
        try:
            found = {**step()}
        except steps.Skipped as reason:
            found = {"skipped": str(reason)}
        except Exception as error:
            traceback.print_exc()
            found = {"failed": (str(error) or repr(error))[:2_000]}
        self._steps[name] = found
        print(f"== {self.name}, {name}, {time.monotonic() - begun:.1f} s: {json.dumps(found)}", flush=True)
        (self._options.out / f"{self.name}.json").write_text(json.dumps(self.result, indent=1) + "\n")

    def _in_a_service(self, label: str, tried: Mapping[str, steps.Step], card: cards.Card, other: cards.Card, config: Path | None) -> None:
        wanted = [name for name in tried if self._wants(name)]
        if not wanted:
            return
        data = self._options.data if label == "alone" else self._folder / "data"
        try:
            with Service(self._options.kinora, data, self._folder / f"{label}.log", config) as service:
                trial = steps.Trial(service, card, other, self._options.gpu, self._options.clips, self._options.patience)
                for name in wanted:
                    self._record(name, partial(tried[name], trial))
        except Exception as error:
            self._record(f"serve {label}", partial(_raise, error))

    def _shared(self, card: cards.Card, other: cards.Card) -> Path:
        """The configuration of two engines that share a device."""
        need = SHARED_MEGABYTES * 6 // 10
        both = [cards.changed(one, device="shared", memory_megabytes=need) for one in (self._poisoned(card), other)]
        path = self._folder / "shared.toml"
        path.write_text(cards.text(cards.joined(both, [{"name": "shared", "memory_megabytes": SHARED_MEGABYTES}])))
        return path

    def _poisoned(self, card: cards.Card) -> cards.Card:
        if not cards.is_pipeline(card):
            return card
        mark = self._folder / "poisoned"
        mark.unlink(missing_ok=True)
        engine = cards.engine(card)
        environment = {**engine.get("environment", {}), steps.POISON_MARK: str(mark)}
        return cards.changed(card, command=[*engine["command"][:-1], f"{PYTHON / 'gpu_models' / 'poison.py'}:Poisoned"], environment=environment)

    def _ratio(self, card: cards.Card) -> steps.Measured:
        """The service's times by those of a plain script, of the same clips."""
        clip, kinora = self._steps.get("first_clip", {}), self._steps.get("next_clips", {})
        if not cards.is_pipeline(card):
            raise steps.Skipped("only for pipelines of diffusers")
        if "size" not in clip or "processor" not in kinora:
            raise steps.Skipped("needs the clips through the service")
        script = by_script(card, clip, self._options, self._folder)
        return {"seconds": kinora["seconds"] / script["seconds"], "processor": kinora["processor"] / script["processor"], "script": script}


def _raise(error: Exception) -> Mapping[str, Any]:
    raise error


def by_script(card: cards.Card, clip: Mapping[str, Any], options: argparse.Namespace, folder: Path) -> steps.Measured:
    """The same clips by `plain.py`: medians, without the first one, and the highest memory."""
    width, height = map(int, clip["size"].split("x"))
    engine, features = cards.engine(card), cards.features(card)
    grid = engine["describe"]["frames"]
    made = clip["frames"] + (grid["offset"] - clip["frames"]) % grid["step"]
    shape = {"width": width, "height": height, "fps": round(clip["fps"]), "frames": made, "kept": clip["frames"]}
    wants = {"sound": clip["sound"] or None, "first_frame": not features.get("text_to_video")}
    asked = folder / "plain.json"
    asked.write_text(json.dumps({"settings": engine["settings"], "clip": {**shape, **wants}, "clips": options.clips}))
    # Its folder has modules with common names, which the pipeline's libraries must not find.
    environment = {**os.environ, **engine.get("environment", {}), "PYTHONSAFEPATH": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    command = [engine["command"][0], str(PYTHON / "gpu_models" / "plain.py"), str(asked)]
    with (folder / "plain.log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        with Peak(process.pid, options.gpu) as peak:
            output, _ = process.communicate()
    if process.returncode != 0:
        last = (folder / "plain.log").read_text().strip().splitlines()[-1:]
        raise RuntimeError(f"the plain script ended with {process.returncode}: {' '.join(last)}")
    clips = [json.loads(line) for line in output.splitlines()][1:]
    return {**{name: statistics.median(one[name] for one in clips) for name in clips[0]}, "gpu_mib": peak.gpu, "main_mib": peak.main}


def machine(options: argparse.Namespace) -> dict[str, Any]:
    """What the results are of."""
    gpu = next((gpu for gpu in gpus() if gpu.index == options.gpu), None)
    version = subprocess.run([options.kinora, "--version"], capture_output=True, text=True).stdout.strip()
    return {
        "gpu": gpu.name if gpu else "none",
        "gpu_mib": gpu.memory_mib if gpu else 0,
        "left_mib": options.leave_mib,
        "driver": gpu.driver if gpu else "",
        "processors": os.cpu_count(),
        "kinora": version,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def source_of(options: argparse.Namespace) -> Source:
    """Where the models come from."""
    wishes = {"--engine": options.engine, "--variant": options.variant, "--device": options.device, "--sd-server": options.sd_server}
    added = [word for option, value in wishes.items() if value for word in (option, value)]
    if options.random_weights:
        return RandomWeights(options.out / "weights", options.python, options.tiny)
    if options.stand_ins:
        repositories = {name: Path(folder) for name, _, folder in (one.partition("=") for one in options.repository)}
        return StandIns(options.kinora, options.data, options.out / "weights", options.python, added, repositories)
    return Catalogue(options.kinora, options.data, added)


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="./gpu-models", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="names in the catalogue [all that fit this machine]")
    parser.add_argument("--kinora", required=True, help="the binary")
    parser.add_argument("--out", type=Path, required=True, help="where to write a JSON file for each model, and the logs")
    parser.add_argument("--data", type=Path, help="data folder for weights and environments, which a later run finds again [OUT/data]")
    names = [*steps.ALONE, *steps.SHARED, "ratio"]
    parser.add_argument("--steps", metavar="STEP,...", default="", help=f"only these, after `add`: {', '.join(names)}")
    parser.add_argument("--clips", type=int, default=2, help="clips to take the median of [2]")
    parser.add_argument("--patience", type=float, default=3_600, help="seconds that a clip may take [3600]")
    parser.add_argument("--gpu", type=int, default=0, help="the GPU's number in nvidia-smi, for memory [0]")
    parser.add_argument("--leave-mib", type=int, default=0, help="hold all of the GPU's memory but this, as a smaller GPU would have")
    for name in ("engine", "variant", "device", "sd-server"):
        parser.add_argument(f"--{name}", help="for `kinora models add`")
    parser.add_argument("--stand-ins", action="store_true", help="no GPU, no hub: tiny pipelines on the CPU from a stand-in for the hub")
    parser.add_argument("--repository", action="append", default=[], metavar="ID=FOLDER", help="a repository of that stand-in, also for sdcpp")
    parser.add_argument("--random-weights", action="store_true", help="no hub: the ready-made cards in their published shapes, with noise")
    parser.add_argument("--tiny", action="store_true", help="with --random-weights: tiny shapes, on the CPU")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch and diffusers, which makes noise")
    parser.add_argument("--write-docs", action="store_true", help=f"put the table into {DOCUMENT.name}")
    options = parser.parse_args()
    if options.write_docs and (options.stand_ins or options.tiny):
        parser.error("--write-docs is for a GPU: what stand-ins and tiny weights measure says nothing about a model")
    options.steps = [name for name in options.steps.split(",") if name]
    if unknown := set(options.steps) - set(names):
        parser.error(f"--steps: there is no {', '.join(sorted(unknown))}")
    for name in ("out", "data"):
        setattr(options, name, (getattr(options, name) or options.out / "data").resolve())
    return options


def main() -> int:
    """Runs all models; the exit status."""
    options = parsed()
    # So that services and holders of memory end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    (options.out / "weights").mkdir(parents=True, exist_ok=True)
    options.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    source = source_of(options)
    about = machine(options)
    results, previous = [], None
    with ExitStack() as held:
        if options.leave_mib:
            held.enter_context(MemoryHolder(options.leave_mib, options.gpu))
        for name in options.models or source.names():
            run = Run(options, source, name, about)
            previous = run.all(previous) or previous
            results.append(run.result)
    print(report.table(results))
    if options.write_docs:
        DOCUMENT.write_text(report.written(DOCUMENT.read_text(), results))
    return 1 if not results or any(map(report.failures, results)) else 0


if __name__ == "__main__":
    sys.exit(main())
