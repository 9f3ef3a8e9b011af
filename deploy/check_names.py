"""Compares what deploy/, packaging/ and their documents say with what the program knows.

check_names.py BINARY RENDERED...: every KINORA_ variable must be a setting of `kinora config` or one of the few others,
and every command line of kinora must have known commands and flags. RENDERED are manifests that Helm has made.
"""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

FOLDERS = [Path("deploy"), Path("packaging")]
PAGES = [Path("docs/deployment.md"), Path("docs/scale.md")]
# Variables that are no settings (crates/kinora/src/config/overlay.rs), and the one that names a binary to tests.
OTHER_VARIABLES = {
    "KINORA_CONFIG", "KINORA_KEY", "KINORA_ACCEPT_LOSS", "KINORA_URL", "KINORA_API_KEY", "KINORA_E2E_BINARY",
}
VARIABLE = re.compile(r"\bKINORA_[A-Z0-9_]*[A-Z0-9]\b")
# A command line inside a document. Its first word is in lower case: the words of SQL after a user's name are not.
SPOKEN = re.compile(r"(?<![\w./:@=-])kinora((?: +(?:--?)?[a-z][\w./:=-]*)(?: +(?:--?)?[A-Za-z][\w./:=-]*)*)")
# Words after which `kinora` is a name: of a user, a unit or an image.
NAMES_AFTER = re.compile(
    r"(?:-u|-o|-g|-t|--name|--user|install|reload|start|stop|restart|status|--now|chown|remove|purge)\s+$"
)


class Cli:
    """Commands and flags, as the help texts of the program list them."""

    def __init__(self, binary: str, path: tuple[str, ...] = ()):
        text = subprocess.run([binary, *path, "--help"], capture_output=True, text=True, check=True).stdout
        self.flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text.partition("Options:")[2])) | {"--help", "--version"}
        commands = re.search(r"^Commands:\n((?:  .*\n)+)", text, re.MULTILINE)
        names = re.findall(r"^  ([a-z-]+)", commands[1], re.MULTILINE) if commands else []
        self.commands = {name: Cli(binary, (*path, name)) for name in names if name != "help"}

    def complaint(self, words: list[str]) -> str | None:
        """What is wrong with this command line, if anything is."""
        at = self
        for word in words:
            if word.startswith("--"):
                if word.partition("=")[0] not in at.flags:
                    return f"unknown flag {word}"
            elif at.commands:
                if word not in at.commands:
                    return f"unknown command {word}"
                at = at.commands[word]
        return None


def settings(binary: str) -> set[str]:
    """The variables of all settings."""
    text = subprocess.run([binary, "config"], capture_output=True, text=True, check=True).stdout

    def names(prefix: str, table: dict):
        for key, value in table.items():
            name = f"{prefix}_{key.upper()}"
            if isinstance(value, dict):
                yield from names(name, value)
            else:
                yield name

    return set(names("KINORA", tomllib.loads(text)))


def from_files() -> set[str]:
    """The variables whose values the image's entry point reads from files."""
    text = Path("deploy/docker/entrypoint").read_text()
    return {f"{name}_FILE" for name in re.search(r"FROM_FILES=\(([^)]*)\)", text)[1].split()}


def texts() -> list[Path]:
    """Every text that may name variables or commands."""
    found = [page for page in PAGES if page.exists()]
    for folder in FOLDERS:
        found += [path for path in folder.rglob("*") if path.is_file() and "passwords" not in path.parts]
    return [path for path in found if path.name not in ("check_names.py", "check")]


def spoken(path: Path) -> list[list[str]]:
    """The command lines in a document's code."""
    text = path.read_text()
    code = re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL) if path.suffix == ".md" else [text]
    lines = []
    for piece in code:
        for line in piece.replace("\\\n", " ").splitlines():
            for match in SPOKEN.finditer(line):
                if not NAMES_AFTER.search(line[: match.start()]):
                    lines.append([word for word in match[1].split() if word != "kinora"])
    return lines


def declared(rendered: list[str]) -> list[tuple[str, list[str]]]:
    """The command lines that containers and units run."""
    found = []
    for name, service in yaml.safe_load(Path("deploy/compose/compose.yaml").read_text())["services"].items():
        if "store_url" in service.get("secrets", []):
            found.append((f"compose: {name}", service["command"]))
    for file in rendered:
        for manifest in filter(None, yaml.safe_load_all(Path(file).read_text())):
            spec = manifest.get("spec", {}).get("template", {}).get("spec", {})
            for container in spec.get("containers", []):
                found.append((f"chart: {manifest['metadata']['name']}", container["args"]))
    for unit in Path("deploy/systemd").glob("*.service"):
        for line in re.findall(r"^ExecStart=/usr/bin/kinora (.*)$", unit.read_text(), re.MULTILINE):
            found.append((str(unit), shlex.split(line)))
    return found


def main() -> int:
    binary, *rendered = sys.argv[1:]
    cli = Cli(binary)
    known = settings(binary) | OTHER_VARIABLES | from_files()
    lines = declared(rendered)
    complaints = []
    for path in texts():
        unknown = set(VARIABLE.findall(path.read_text(errors="replace"))) - known
        complaints += [f"{path}: unknown variable {name}" for name in sorted(unknown)]
        if path.suffix == ".md" or path.name == "NOTES.txt":
            lines += [(str(path), words) for words in spoken(path)]
    for file in rendered:
        unknown = set(VARIABLE.findall(Path(file).read_text())) - known
        complaints += [f"chart: unknown variable {name}" for name in sorted(unknown)]
    for place, words in lines:
        complaint = cli.complaint(words)
        if complaint:
            complaints.append(f"{place}: kinora {' '.join(words)}: {complaint}")
    print("\n".join(sorted(set(complaints))))
    print(f"{len(lines)} command lines, {len(known)} variables, {len(set(complaints))} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
