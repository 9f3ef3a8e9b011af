"""Where the models come from: the catalogue by `kinora models add`, with or without stand-ins, or random weights behind the ready-made cards."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from . import cards, stand_ins
from .hub import Hub
from .models import Commands


class Source(Protocol):
    """Adds models to a data folder."""

    label: str
    """Beside the models' names in tables; empty for the published weights."""

    def names(self) -> Sequence[str]:
        """The models that fit this machine."""

    def add(self, name: str, log: Path) -> Mapping[str, Any]:
        """Makes the model ready to be served: seconds by step."""

    def card(self, name: str) -> cards.Card:
        """The card of a model that was added."""

    def config(self, name: str) -> Path | None:
        """The configuration to serve it by, if it is not that of the data folder."""


class Catalogue:
    """The published weights."""

    label = ""

    def __init__(self, commands: Commands) -> None:
        self.commands = commands

    def names(self) -> Sequence[str]:
        return self.commands.fitting()

    def add(self, name: str, log: Path) -> Mapping[str, Any]:
        return self.commands.add(name, log)

    def card(self, name: str) -> cards.Card:
        return cards.read(self.commands.card(name))

    def config(self, name: str) -> Path | None:
        return None


class StandIns(Catalogue):
    """The same commands with a stand-in for the hub and for nvidia-smi; pipelines are tiny and run on the CPU."""

    label = "stand-ins"

    def __init__(self, kinora: str, data: Path, folder: Path, python: str, options: Sequence[str], repositories: Mapping[str, Path]) -> None:
        self._python = python
        self._folder = folder
        self._hub = Hub(repositories)
        variables = {"KINORA_WEIGHTS_HUB_URL": self._hub.address, "PATH": stand_ins.path_with_gpu(folder / "bin")}
        super().__init__(Commands(kinora, data, variables, options))

    def names(self) -> Sequence[str]:
        return list(stand_ins.TINY)

    def add(self, name: str, log: Path) -> Mapping[str, Any]:
        if name in stand_ins.TINY:
            self._hub.serve(stand_ins.repository_of(name), stand_ins.tiny(self._python, name, self._folder))
        seconds = super().add(name, log)
        card = self.card(name)
        if cards.is_pipeline(card):
            path = self.commands.card(name)
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

    def add(self, name: str, log: Path) -> Mapping[str, Any]:
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
