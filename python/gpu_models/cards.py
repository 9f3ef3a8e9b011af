"""A model's card: one engine and the models that it serves, as TOML. Read, changed and written."""

import copy
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

SECONDS_MIN = 2
"""The shortest video of the API."""

Card = dict[str, Any]


def read(path: Path) -> Card:
    """The card in a file."""
    return tomllib.loads(path.read_text())


def engine(card: Card) -> dict[str, Any]:
    """The table of the first engine, by which the first model is made."""
    return dict[str, Any](card["engines"][0])


def name(card: Card) -> str:
    """What clients call its first model."""
    return str(card["models"][0]["id"])


def features(card: Card) -> Mapping[str, Any]:
    """What its engine is said to offer; empty where the engine itself says it."""
    described: Mapping[str, Any] = engine(card).get("describe", {})
    return dict[str, Any](described.get("features", {}))


def is_pipeline(card: Card) -> bool:
    """Whether its engine is a command of the Python package, as those of diffusers are."""
    return engine(card)["kind"] == "process" and "kinora_engine.diffusers:Pipeline" in engine(card).get("command", [])


def how(card: Card) -> str:
    """How the model runs, for a table: `diffusers, offload model`, or the kind of its engine with the name of its largest part."""
    if is_pipeline(card):
        return f"diffusers, offload {engine(card)['settings'].get('offload', 'none')}"
    weights = engine(card).get("model", {}).get("diffusion_model", "")
    return ", ".join(filter(None, [str(engine(card)["kind"]), Path(str(weights)).stem]))


def shortest(card: Card) -> int:
    """Seconds of its shortest video."""
    model = card["models"][0]
    return min(model["seconds"]) if "seconds" in model else int(model.get("seconds_min", SECONDS_MIN))


def longest(card: Card) -> int:
    """Seconds of its longest video."""
    model = card["models"][0]
    return max(model["seconds"]) if "seconds" in model else int(model.get("seconds_max", SECONDS_MIN))


def changed(card: Card, settings: Mapping[str, Any] = {}, models: Mapping[str, Any] = {}, **keys: Any) -> Card:
    """A copy with other settings, other keys of its models, and other keys of its engine."""
    made = copy.deepcopy(card)
    made["engines"][0].update(keys)
    if settings:
        made["engines"][0].setdefault("settings", {}).update(settings)
    for model in made["models"]:
        model.update(models)
    return made


def renamed(card: Card, new: str) -> Card:
    """A copy with this name for its engine, and one model of this name."""
    made = changed(card, name=new)
    model = {key: value for key, value in made["models"][0].items() if key != "aliases"}
    made["models"] = [{**model, "id": new, "engine": new}]
    return made


def joined(cards: list[Card], devices: list[dict[str, Any]] | None = None) -> Card:
    """One configuration of several."""
    made: Card = {"devices": devices} if devices else {}
    return {**made, "engines": [one for card in cards for one in card["engines"]], "models": [one for card in cards for one in card["models"]]}


def text(card: Card) -> str:
    """As TOML."""
    return "".join(f"[[{table}]]\n{_lines(record)}\n" for table, records in card.items() for record in records)


def _lines(record: Mapping[str, Any]) -> str:
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in record.items())


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items()) + " }" if value else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    # Strings, numbers and truth values of JSON are those of TOML, but for the character of deletion.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
