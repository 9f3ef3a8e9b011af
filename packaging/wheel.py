"""Makes a wheel of the binary with its man pages and completions, so that `pip install kinora` and `uvx kinora serve` work.

The tag `manylinux_X_Y` promises that the binary runs with glibc X.Y and the libraries that every such system has;
`packaging/check` asks auditwheel whether that is true.
"""

import argparse
import base64
import hashlib
import os
import platform
import subprocess
import time
import zipfile
from pathlib import Path

METADATA = """\
Metadata-Version: 2.4
Name: kinora
Version: {version}
Summary: Self-hosted video generation service
Keywords: video,generation,openai,server
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-APACHE
License-File: LICENSE-MIT
License-File: LICENCES
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Multimedia :: Video
Requires-Python: >=3.8
Description-Content-Type: text/markdown

`uvx kinora serve` creates `./kinora-data` and serves the API on `127.0.0.1:8080`; it prints an API key and commands to try.
The wheel contains the program, its man pages and its completions, and no Python module. `kinora licences` prints the licences of everything in it.
"""


def digest(content: bytes) -> str:
    """The hash of a file as RECORD wants it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("binary", "share", "version", "glibc", "out"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    tag = f"py3-none-manylinux_{given.glibc.replace('.', '_')}_{platform.machine()}"
    info, data = f"kinora-{given.version}.dist-info", f"kinora-{given.version}.data"
    licences = subprocess.run([given.binary, "licences"], capture_output=True, check=True).stdout
    files = {
        f"{data}/scripts/kinora": (0o755, Path(given.binary).read_bytes()),
        f"{info}/licenses/LICENSE-APACHE": (0o644, Path("LICENSE-APACHE").read_bytes()),
        f"{info}/licenses/LICENSE-MIT": (0o644, Path("LICENSE-MIT").read_bytes()),
        f"{info}/licenses/LICENCES": (0o644, licences),
        f"{info}/METADATA": (0o644, METADATA.format(version=given.version).encode()),
        f"{info}/WHEEL": (0o644, f"Wheel-Version: 1.0\nGenerator: kinora\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()),
    }
    share = Path(given.share)
    for path in sorted(path for path in share.rglob("*") if path.is_file()):
        files[f"{data}/data/share/{path.relative_to(share)}"] = (0o644, path.read_bytes())
    record = "".join(f"{name},{digest(content)},{len(content)}\n" for name, (_, content) in files.items())
    files[f"{info}/RECORD"] = (0o644, f"{record}{info}/RECORD,,\n".encode())
    moment = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))[:6]
    with zipfile.ZipFile(Path(given.out) / f"kinora-{given.version}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, (mode, content) in files.items():
            entry = zipfile.ZipInfo(name, moment)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)


if __name__ == "__main__":
    main()
