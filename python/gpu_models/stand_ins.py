"""A machine without a GPU that looks as if it had one, and tiny weights in place of the published ones, from a hub on this machine."""

import os
import subprocess
from pathlib import Path

from . import cards

REPOSITORY = Path(__file__).resolve().parents[2]
READY_MADE = REPOSITORY / "models" / "diffusers"
TINY = {
    "wan2.1-t2v-1.3b": ("wan", 40),
    "wan2.2-t2v-a14b": ("wan_a14b", 40),
    "wan2.2-ti2v-5b": ("wan_ti2v", 40),
    "wan2.2-i2v-a14b": ("wan_i2v", 40),
    "ltx-2.3": ("ltx2_condition", 4),
}
"""Builders of `tiny.py`, and steps that last for some seconds, by the names of models."""
FULL = {"wan2.1-t2v-1.3b": "1.3b", "wan2.1-t2v-14b": "14b", "wan2.2-ti2v-5b": "5b"}
"""Shapes of `full.py` by the names of models."""

_NVIDIA_SMI = """#!/usr/bin/env python3
import sys
has = {
    "index": "0", "uuid": "GPU-00000000-0000-0000-0000-000000000000", "name": "stand-in", "driver_version": "580.159.03", "compute_cap": "9.0",
    "memory.total": "81559", "memory.used": "1", "memory.free": "81558", "mig.mode.current": "[N/A]",
}
asked = next((word.partition("=")[2] for word in sys.argv if word.startswith("--query-gpu=")), "")
print(", ".join(has.get(column.strip(), "[N/A]") for column in asked.split(",")))
"""


def path_with_gpu(folder: Path) -> str:
    """A PATH on which nvidia-smi tells of a GPU with 80 GB."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "nvidia-smi"
    program.write_text(_NVIDIA_SMI)
    program.chmod(0o755)
    return os.pathsep.join([str(folder), os.environ.get("PATH", "")])


def on_the_cpu(name: str, card: cards.Card) -> cards.Card:
    """A card with settings for a tiny model, and videos of the smallest size."""
    # The tiny one from a first frame has one expert.
    arguments = {key: value for key, value in cards.engine(card)["settings"].get("arguments", {}).items() if key != "guidance_scale_2"}
    settings = {"dtype": "float32", "torch_device": "cpu", "steps": TINY[name][1], "offload": "none", "arguments": arguments}
    # Threads that wait for one another are slow beside other work.
    environment = {**cards.engine(card).get("environment", {}), "OMP_NUM_THREADS": "1"}
    return cards.changed(card, settings, {"sizes": ["256x256"], "seconds_max": cards.SECONDS_MIN}, environment=environment)


def repository_of(name: str) -> str:
    """The repository that the ready-made configuration of this name has its weights from."""
    return str(cards.engine(cards.read(READY_MADE / f"{name}.toml"))["settings"]["model"])


def tiny(python: str, name: str, folder: Path) -> Path:
    """The folder of a tiny model with random weights, built by a Python with diffusers unless it is there."""
    return _built(python, folder / name, "tiny.py", TINY[name][0])


def full(python: str, name: str, folder: Path) -> Path:
    """The same in the published shapes. The text encoder, which all of them share, is built once."""
    encoders = [path for other in FULL if (path := folder / other / "text_encoder").exists() and other != name]
    return _built(python, folder / name, "full.py", FULL[name], *encoders[:1])


def _built(python: str, folder: Path, script: str, kind: str, *more: Path) -> Path:
    if not (folder / "model_index.json").exists():
        command = [python, str(REPOSITORY / "python" / "tests_torch" / script), kind, str(folder), *map(str, more)]
        ended = subprocess.run(command, capture_output=True, text=True)
        if ended.returncode != 0:
            raise RuntimeError(f"{script} {kind} failed: {ended.stderr[-1_000:]}")
    return folder
