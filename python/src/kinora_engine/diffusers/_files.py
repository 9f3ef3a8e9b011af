"""Reads a model's small files: of a folder, or of a repository in the hub's cache or on the hub. Imports neither torch nor diffusers."""

import json
from pathlib import Path
from typing import Any

INDEX = "model_index.json"


def read_json(model: str, name: str) -> dict[str, Any] | None:
    """The content of a file of the model; `None` if it cannot be had."""
    path = Path(model) / name
    if not path.is_file():
        path = _cached(model, name) or path
    return json.loads(path.read_bytes()) if path.is_file() else None


def missing(model: str) -> str:
    """What to do about a model whose `model_index.json` cannot be had."""
    if not _is_repository(model) or Path(model).is_dir():
        return f"{model} has no {INDEX}: settings.model is a folder with that file, or the id of a repository"
    try:
        _download(model, INDEX)
    except ImportError:
        return f"there is no folder {model}; if it is the id of a repository, install huggingface_hub"
    except Exception as error:
        return f"{_remedy(model, type(error).__name__)} ({_first_line(error)})"
    return f"{model} can be had now: start again"


def _remedy(model: str, problem: str) -> str:
    if problem == "GatedRepoError":
        return f"the repository {model} is gated: ask its owner for access, and set HF_TOKEN in the engine's environment"
    if problem in ("RepositoryNotFoundError", "HFValidationError"):
        return f"there is no folder {model}, nor a public repository: correct settings.model, or set HF_TOKEN if it is private"
    if problem in ("EntryNotFoundError", "RemoteEntryNotFoundError"):
        return f"the repository {model} has no {INDEX}: name one in the format of diffusers; a modular pipeline needs settings.pipeline"
    return f"{model} is not in the cache, and the hub cannot be reached: check HF_ENDPOINT and HF_HUB_OFFLINE, or set settings.model to a folder"


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def _is_repository(model: str) -> bool:
    return model.count("/") == 1 and not model.startswith((".", "/", "~"))


def _cached(model: str, name: str) -> Path | None:
    """The file in the local cache of the hub, which may need a download first."""
    if not _is_repository(model):
        return None
    try:
        return _download(model, name)
    except Exception:
        return None


def _download(model: str, name: str) -> Path:
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(model, name))
