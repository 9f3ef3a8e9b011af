"""What was measured, as JSON and as the table of docs/models.md. A step is a table of figures, `{"failed": reason}` or `{"skipped": reason}`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

BEGIN, END = "<!-- gpu-models:begin -->", "<!-- gpu-models:end -->"
Steps = Mapping[str, Mapping[str, Any]]
Result = Mapping[str, Any]


def failures(result: Result) -> dict[str, str]:
    """The reasons of the steps that failed."""
    return {name: str(step["failed"]) for name, step in result["steps"].items() if "failed" in step}


def title(result: Result) -> str:
    """The model's name, and where its weights were from if they were not the published ones."""
    return f"{result['model']} ({result['source']})" if result["source"] else str(result["model"])


def _seconds(*path: str) -> Callable[[Mapping[str, Any]], str]:
    """A figure at this path of a step."""

    def cell(step: Mapping[str, Any]) -> str:
        found: Any = step
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        return "–" if found is None else f"{found:.1f}"

    return cell


def _memory(step: Mapping[str, Any]) -> str:
    return f"{_gigabytes(step['gpu_mib'])}, {_gigabytes(step['main_mib'])}"


def _gigabytes(mib: float) -> str:
    return f"{mib * (1 << 20) / 1e9:.1f}" if mib else "–"


def _without_memory(step: Mapping[str, Any]) -> str:
    return ", ".join(f"{step[key]['status'].replace('_', ' ')} in {step[key]['seconds']:.1f}" for key in ("short", "none"))


def _ratio(step: Mapping[str, Any]) -> str:
    return f"{step['seconds']:.2f}, {step['processor']:.2f}"


def _clip(step: Mapping[str, Any]) -> str:
    return f"{step['size']}, {step['frames'] / step['fps']:.0f} s" + (", sound" if step["sound"] else "")


COLUMNS: tuple[tuple[str, str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("engine installed", "add", _seconds("engine")),
    ("weights", "add", _seconds("weights")),
    ("check", "add", _seconds("check")),
    ("clip", "first_clip", _clip),
    ("first clip", "first_clip", _seconds("seconds")),
    ("a clip", "next_clips", _seconds("seconds")),
    ("GB of the GPU, of main memory", "next_clips", _memory),
    ("longest clip", "longest_clip", lambda step: f"{step['length']} s in {step['seconds']:.1f}, {_gigabytes(step['gpu_mib'])} GB"),
    ("cancel to next step", "cancel", _seconds("step", "first_step")),
    ("engine killed", "kill", _seconds("seconds")),
    ("GPU failed", "poisoned", _seconds("seconds")),
    ("300 MiB left, none left", "memory", _without_memory),
    ("none left at loading", "unopened", _seconds("none", "seconds")),
    ("swap", "swap", _seconds("to")),
    ("by a plain script: time, processor time", "ratio", _ratio),
)
"""Head, step and figure. Times are in seconds."""


def row(result: Result) -> str:
    """A model's line of the table."""
    machine = result["machine"]
    cells = [title(result), result["engine"] or "–", machine["gpu"] + (f", {machine['left_mib']:,} MiB of it" if machine["left_mib"] else "")]
    for _, name, figure in COLUMNS:
        step: Mapping[str, Any] = result["steps"].get(name, {"skipped": ""})
        cells.append("–" if "skipped" in step else "**failed**" if "failed" in step else figure(step))
    return f"| {' | '.join(cells)} |"


def table(results: Iterable[Result], kept: Iterable[str] = ()) -> str:
    """Lines of the results in front of those that are kept, and a line for each failure."""
    results = list(results)
    kept = list(kept)
    heads = ["model", "engine", "GPU", *(head for head, _, _ in COLUMNS)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lines += [row(result) for result in results] + [line for line in kept if line.startswith("| ")]
    reasons = [f"- {title(result)}, {name}: {_plain(reason)}" for result in results for name, reason in failures(result).items()]
    reasons += [line for line in kept if line.startswith("- ")]
    return "\n".join(lines + ([""] + reasons if reasons else [])) + "\n"


def written(document: str, results: Iterable[Result]) -> str:
    """The document with the results between its marks. Lines of other models stay.

    Raises:
        ValueError: it has no marks.
    """
    results = list(results)
    before, begin, rest = document.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document has no {BEGIN} and {END}")
    titles = {title(result) for result in results}
    # Two lines are the table's head.
    rows = [line for line in old.splitlines() if line.startswith("| ")][1:]
    reasons = [line for line in old.splitlines() if line.startswith("- ")]
    kept = [line for line in rows if line.split("|")[1].strip() not in titles]
    kept += [line for line in reasons if line[2:].partition(", ")[0] not in titles]
    return f"{before}{begin}\n{table(results, kept)}{end}{after}"


def _plain(reason: str) -> str:
    """One line that Markdown does not read as its own."""
    return " ".join(reason.split())[:300].replace("|", "/").replace("<", "(").replace(">", ")").replace("`", "'")
