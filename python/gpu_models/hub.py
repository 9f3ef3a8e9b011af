"""A stand-in for the model hub: serves repositories from folders on the loopback, as much as huggingface_hub asks for.

    with Hub({"kinora-tests/tiny-wan": folder}) as hub:
        environment = {"HF_ENDPOINT": hub.address}

It has one revision of each repository, and neither tokens nor writes. It can break off the first answer of a file, as networks do.
"""

import hashlib
import io
import json
import re
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

REVISION = "main"
_LARGE = (".safetensors", ".gguf", ".bin", ".pth")
"""Files that the hub keeps apart, by their SHA-256."""
_PART_BYTES = 1 << 20
_JSON = {"Content-Type": "application/json"}
_ABOUT = re.compile(r"/api/models/(?P<id>[^/]+/[^/]+)(/revision/(?P<revision>[^/]+))?")
_TREE = re.compile(r"/api/models/(?P<id>[^/]+/[^/]+)/tree/(?P<revision>[^/]+)")
_FILE = re.compile(r"/(?P<id>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)")
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class Hub:
    """The server, on a free port of the loopback until `close`."""

    def __init__(self, repositories: Mapping[str, Path]) -> None:
        self.repositories = {name: _Repository(folder) for name, folder in repositories.items()}
        self.requests: list[str] = []
        """Methods, paths and ranges, in the order in which they arrived."""
        self.break_off: dict[str, int] = {}
        """By the end of a path: after how many bytes the next answer ends."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.hub = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def serve(self, name: str, folder: Path) -> None:
        """Adds a repository, or replaces it by a new revision."""
        self.repositories[name] = _Repository(folder)

    def downloads(self) -> list[str]:
        """The paths of the files that were sent."""
        return [line.removeprefix("GET ") for line in self.requests if line.startswith("GET ") and "/resolve/" in line]

    def broken_off(self, path: str) -> int | None:
        """After how many bytes the answer for this path ends too early."""
        end = next((end for end in self.break_off if path.endswith(end)), None)
        return None if end is None else self.break_off.pop(end)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> "Hub":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Repository:
    """A folder's files, and the commit that names their state."""

    def __init__(self, folder: Path) -> None:
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        self.files = {path.relative_to(folder).as_posix(): path for path in paths}
        self.etags = {name: _sha256(path) for name, path in self.files.items()}
        self.commit = hashlib.sha1(json.dumps(self.etags).encode()).hexdigest()

    def has(self, revision: str | None) -> bool:
        return revision in (None, REVISION, self.commit)

    def about(self, name: str) -> dict[str, Any]:
        siblings = [{"rfilename": file} for file in self.files]
        return {"id": name, "modelId": name, "sha": self.commit, "private": False, "siblings": siblings, "tags": []}

    def tree(self) -> list[dict[str, Any]]:
        return [self._entry(name, path.stat().st_size) for name, path in self.files.items()]

    def _entry(self, name: str, size: int) -> dict[str, Any]:
        entry: dict[str, Any] = {"type": "file", "path": name, "size": size, "oid": self.etags[name][:40]}
        if name.endswith(_LARGE):
            entry["lfs"] = {"oid": self.etags[name], "size": size, "pointerSize": 134}
        return entry


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_PART_BYTES):
            digest.update(part)
    return digest.hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        hub: Hub = self.server.hub  # type: ignore[attr-defined]
        hub.requests.append(" ".join([self.command, path, self.headers.get("Range", "")]).rstrip())
        for pattern, answer in ((_FILE, self._file), (_TREE, self._tree), (_ABOUT, self._about)):
            match = pattern.fullmatch(path)
            if match is None:
                continue
            repository = hub.repositories.get(match["id"])
            if repository is None:
                # The hub says the same of a private repository.
                return self._refuse("RepoNotFound", "Repository not found", status=401)
            if not repository.has(match["revision"]):
                return self._refuse("RevisionNotFound", f"Invalid rev id: {match['revision']}")
            return answer(repository, match)
        return self._refuse("EntryNotFound", "Not found")

    do_HEAD = do_GET

    def _about(self, repository: _Repository, match: re.Match[str]) -> None:
        self._send(200, json.dumps(repository.about(match["id"])).encode(), _JSON)

    def _tree(self, repository: _Repository, match: re.Match[str]) -> None:
        self._send(200, json.dumps(repository.tree()).encode(), _JSON)

    def _file(self, repository: _Repository, match: re.Match[str]) -> None:
        path = repository.files.get(match["file"])
        if path is None:
            return self._refuse("EntryNotFound", "Entry not found", {"X-Repo-Commit": repository.commit})
        size = path.stat().st_size
        etag = repository.etags[match["file"]]
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": repository.commit, "Accept-Ranges": "bytes"}
        wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
        if wanted is None:
            return self._send(200, path, headers, 0, size)
        start, end = int(wanted[1]), min(int(wanted[2] or size - 1), size - 1)
        if start >= size:
            return self._send(416, b"", {**headers, "Content-Range": f"bytes */{size}"})
        headers["Content-Range"] = f"bytes {start}-{end}/{size}"
        return self._send(206, path, headers, start, end + 1 - start)

    def _refuse(self, code: str, message: str, headers: Mapping[str, str] = {}, status: int = 404) -> None:
        self._send(status, message.encode(), {"X-Error-Code": code, "X-Error-Message": message, **headers})

    def _send(self, status: int, body: bytes | Path, headers: Mapping[str, str], start: int = 0, length: int | None = None) -> None:
        """Answers with bytes, or with so many of a file."""
        total = len(body) if isinstance(body, bytes) else length or 0
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(total))
        self.end_headers()
        if self.command == "HEAD":
            return
        hub: Hub = self.server.hub  # type: ignore[attr-defined]
        end = hub.broken_off(self.path)
        left = total if end is None else min(end, total)
        with io.BytesIO(body) if isinstance(body, bytes) else body.open("rb") as file:
            file.seek(start)
            while left > 0 and (part := file.read(min(left, _PART_BYTES))):
                self.wfile.write(part)
                left -= len(part)
        if end is not None:
            self.close_connection = True
