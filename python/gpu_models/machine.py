"""What the machine has and uses: GPUs by nvidia-smi, memory and processor time of a process with its descendants."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
SAMPLE_SECONDS = 0.5
CARDS = Path("/sys/class/drm")

_HOLDER = """
import ctypes, sys, time
index, leave, is_greedy = int(sys.argv[1]), int(sys.argv[2]), len(sys.argv) > 3
driver = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    status = getattr(driver, name)(*arguments)
    if status != 0:
        raise OSError(f"{name} failed with CUDA error {status}")
device, context, free, total = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), index)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
is_told = False
while True:
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    size = free.value - leave
    while size >= 2 << 20:
        try:
            call("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(size))
            break
        except OSError:
            size //= 2
    else:
        if not is_told:
            print("held", flush=True)
            is_told = True
        if not is_greedy:
            sys.stdin.read()
        time.sleep(0.005)
"""
"""Allocates by the driver alone, so that it needs no PyTorch."""


@dataclass(frozen=True)
class Gpu:
    """A line of nvidia-smi. Memory in MiB."""

    index: int
    name: str
    driver: str
    memory_mib: int
    used_mib: int


def gpus() -> list[Gpu]:
    """The GPUs that nvidia-smi lists; none without it."""
    columns = "index,name,driver_version,memory.total,memory.used"
    try:
        asked = ["nvidia-smi", f"--query-gpu={columns}", "--format=csv,noheader,nounits"]
        return parse_gpus(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    except (OSError, subprocess.CalledProcessError):
        return []


def parse_gpus(text: str) -> list[Gpu]:
    """The lines of nvidia-smi's table. A figure that a device does not have (`[N/A]`) is 0."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 5 and cells[0].isdigit():
            total, used = (int(cell) if cell.isdigit() else 0 for cell in cells[3:])
            found.append(Gpu(int(cells[0]), cells[1], cells[2], total, used))
    return found


def gpu_used(index: int = 0) -> float:
    """Memory in use on a GPU in MiB: of nvidia-smi, or what amdgpu says of the fullest card. 0 without either."""
    for gpu in gpus():
        if gpu.index == index:
            return float(gpu.used_mib)
    used = [int(path.read_text()) for path in CARDS.glob("card*/device/mem_info_vram_used")]
    return max(used, default=0) / MIB


def family(pid: int) -> Iterator[int]:
    """The process and its descendants."""
    yield pid
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from family(int(child))
    except OSError:
        pass


def resident(pid: int) -> float:
    """Anonymous memory in MiB: without files, of which weights are mapped ones."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def processor_seconds(pid: int) -> float:
    """What a process and its descendants have taken; those that have ended do not count."""
    ticks = 0
    for one in family(pid):
        try:
            ticks += sum(map(int, Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:13]))
        except OSError:
            pass
    return ticks / os.sysconf("SC_CLK_TCK")


class Peak:
    """The highest memory, in MiB, of a process with its descendants (resident) and of the whole GPU, until `stop`."""

    def __init__(self, pid: int, gpu: int = 0) -> None:
        self.main = self.gpu = 0.0
        self._pid = pid
        self._index = gpu
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the watch."""
        self._ends.set()
        self._thread.join()

    def __enter__(self) -> "Peak":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _watch(self) -> None:
        while not self._ends.wait(SAMPLE_SECONDS):
            self.main = max(self.main, sum(map(resident, family(self._pid))))
            self.gpu = max(self.gpu, gpu_used(self._index))


class MemoryHolder:
    """A process that holds all of an NVIDIA GPU's memory but so many MiB within the block; a greedy one also what others give back."""

    def __init__(self, leave_mib: int, gpu: int = 0, greedy: bool = False) -> None:
        arguments = [str(gpu), str(leave_mib * MIB), *(["greedy"] if greedy else [])]
        environment = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        command = [sys.executable, "-c", _HOLDER, *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def __enter__(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "held\n":
            self.__exit__()
            raise OSError("cannot hold memory of the GPU; the error is above")

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
