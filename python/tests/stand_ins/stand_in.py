"""What both stand-ins do: clips of one shade, and the troubles that a prompt names."""

import time


def make(prompt: str, width: int, height: int, frames: int, seed: int) -> list[bytes]:
    """The frames. The real libraries give arrays `[height][width][3]`, which the package takes as well."""
    if prompt == "sleeps":
        time.sleep(300)
    if prompt == "naps":
        time.sleep(1.0)
    if prompt == "full":
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
    if prompt == "fails":
        raise ValueError("no such thing")
    return [bytes([seed % 256]) * (width * height * 3)] * frames
