"""Where the models come from: the catalogue by `kinora models add`, with or without stand-ins, or random weights behind the ready-made cards.

All that `./gpu-models` runs of `kinora models` is in this file.
"""

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import cards, stand_ins
from .hub import Hub


class Catalogue:
    """The published weights, by a binary that adds models to its data folder. `variables` and `options` are those of `models add`."""

    label = ""
    """Beside the models' names in tables; empty for the published weights."""

    def __init__(self, kinora: str, data: Path, options: Sequence[str] = (), variables: Mapping[str, str] = {}) -> None:
        self._kinora = kinora
        self._data = data
        self._options = options
        self._environment = {**os.environ, **variables}

    def names(self) -> Sequence[str]:
        """The models that fit this machine.

        Raises:
            RuntimeError: the command failed.
        """
        command = [self._kinora, "models", "list", "--available", "--json", "--data", str(self._data)]
        ended = subprocess.run(command, capture_output=True, text=True, env=self._environment)
        if ended.returncode != 0:
            raise RuntimeError(f"{' '.join(command[1:5])} ended with {ended.returncode}: {ended.stderr.strip()[-500:]}")
        return [str(entry["name"]) for entry in json.loads(ended.stdout) if entry["fits"]]

    def add(self, name: str, log: Path) -> Mapping[str, float]:
        """Makes the model ready to be served: the seconds of each step that the command announces (`3/5 engine`), by its name, and of `all`.

        Raises:
            RuntimeError: it failed; with its last lines.
        """
        command = [self._kinora, "models", "add", name, "--yes", "--data", str(self._data), *self._options]
        begun = time.monotonic()
        steps, lines = [("", begun)], list[str]()
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with log.open("w") as file, subprocess.Popen(command, text=True, env=self._environment, **pipes) as process:
            assert process.stdout is not None
            for line in process.stdout:
                file.write(line)
                lines.append(line.strip())
                if step := announced(line):
                    steps.append((step, time.monotonic()))
        if process.returncode != 0:
            raise RuntimeError(f"models add ended with {process.returncode}: {' '.join(lines[-5:])[-1_000:]}")
        ended = time.monotonic()
        ends = [moment for _, moment in steps[1:]] + [ended]
        return {name: end - start for (name, start), end in zip(steps, ends) if name} | {"all": ended - begun}

    def card(self, name: str) -> cards.Card:
        """The card of a model that was added."""
        return cards.read(self._path(name))

    def config(self, name: str) -> Path | None:
        """The configuration to serve it by, if it is not that of the data folder."""
        return None

    def _path(self, name: str) -> Path:
        return self._data / "models.d" / f"{name}.toml"


class StandIns(Catalogue):
    """The same commands with a stand-in for the hub and for nvidia-smi; pipelines are tiny and run on the CPU."""

    label = "stand-ins"

    def __init__(self, kinora: str, data: Path, folder: Path, python: str, options: Sequence[str], repositories: Mapping[str, Path]) -> None:
        self._python = python
        self._folder = folder
        self._hub = Hub(repositories)
        variables = {"KINORA_WEIGHTS_HUB_URL": self._hub.address, "PATH": stand_ins.path_with_gpu(folder / "bin")}
        super().__init__(kinora, data, options, variables)

    def names(self) -> Sequence[str]:
        return list(stand_ins.TINY)

    def add(self, name: str, log: Path) -> Mapping[str, float]:
        if name in stand_ins.TINY:
            self._hub.serve(stand_ins.repository_of(name), stand_ins.tiny(self._python, name, self._folder))
        seconds = super().add(name, log)
        card = self.card(name)
        if cards.is_pipeline(card):
            path = self._path(name)
            # The command's own record of how it made the card is in comments.
            comments = [line for line in path.read_text().splitlines(keepends=True) if line.startswith("#")]
            path.write_text("".join(comments) + cards.text(stand_ins.on_the_cpu(name, card)))
        return seconds


class RandomWeights:
    """The ready-made cards of diffusers with random weights, for machines that reach no hub. Tiny ones run on the CPU."""

    def __init__(self, folder: Path, python: str, is_tiny: bool) -> None:
        self.label = "tiny random weights" if is_tiny else "random weights"
        self._folder = folder
        self._python = python
        self._is_tiny = is_tiny

    def names(self) -> Sequence[str]:
        return list(stand_ins.TINY if self._is_tiny else stand_ins.FULL)

    def add(self, name: str, log: Path) -> Mapping[str, float]:
        build = stand_ins.tiny if self._is_tiny else stand_ins.full
        model = build(self._python, name, self._folder)
        card = cards.read(stand_ins.READY_MADE / f"{name}.toml")
        package = str(stand_ins.REPOSITORY / "python" / "src")
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [self._python, *cards.engine(card)["command"][1:]]
        environment = {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}
        card = cards.changed(card, {"model": str(model)}, command=command, environment=environment)
        self._path(name).write_text(cards.text(stand_ins.on_the_cpu(name, card) if self._is_tiny else card))
        return {}

    def card(self, name: str) -> cards.Card:
        return cards.read(self._path(name))

    def config(self, name: str) -> Path | None:
        return self._path(name)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.toml"


Source = Catalogue | RandomWeights


def announced(line: str) -> str:
    """`plan` of `2/5 plan: …`, and `engine` of `3/5 engine`; empty for other lines."""
    count, _, rest = line.strip().partition(" ")
    parts = count.split("/")
    is_step = len(parts) == 2 and all(part.isdigit() for part in parts)
    return rest.partition(":")[0].strip() if is_step else ""
