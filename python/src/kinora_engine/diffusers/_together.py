"""How ranks meet: torch.distributed, and context parallelism of diffusers. All ranks are processes of one machine.

They meet in a file without a name, so no port is open for it, and nothing is left when they are killed.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from ._settings import Settings

MEETING_SECONDS = 1_800
"""Longest wait of one rank for another: loading may take one of them longer."""


def meeting_place() -> int:
    """The descriptor of a file in which ranks meet. Child processes must inherit it."""
    return os.memfd_create("kinora-ranks")


def join(place: int, rank: int, settings: Settings) -> None:
    """Joins the others; returns when all are there."""
    import torch
    import torch.distributed as distributed

    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        os.environ.setdefault(name, "lo")
    device = torch.device(rank_device(settings, rank))
    if device.type == "cuda":
        torch.cuda.set_device(device)
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if device.type == "cuda" else "cpu:gloo",
        store=distributed.FileStore(f"/proc/self/fd/{place}", settings.ranks),
        rank=rank,
        world_size=settings.ranks,
        timeout=timedelta(seconds=MEETING_SECONDS),
    )


def rank_device(settings: Settings, rank: int) -> str:
    """The device of a rank, in torch's words."""
    import torch

    device = settings.torch_device or ("cuda" if torch.cuda.is_available() else "cpu")
    return f"{device}:{rank}" if settings.ranks > 1 and device == "cuda" else device


def share_denoiser(denoiser: Any, settings: Settings) -> None:
    """Splits a denoiser's sequence over all ranks.

    Raises:
        ValueError: diffusers cannot split this denoiser, or not with this attention backend.
    """
    import diffusers

    config = diffusers.ContextParallelConfig(**(settings.parallel or {"ulysses_degree": settings.ranks}))
    with _cpu_counted():
        denoiser.enable_parallelism(config=config)


def from_first(value: int) -> int:
    """The first rank's value, in all ranks. All must call it at the same place."""
    import torch
    import torch.distributed as distributed

    shared = torch.tensor([value], dtype=torch.int64)
    distributed.broadcast(shared, src=0)
    return int(shared.item())


@contextmanager
def _cpu_counted() -> Iterator[None]:
    """diffusers 0.42.1 divides by the number of accelerators, which is 0 on a machine without any."""
    import torch

    if torch.accelerator.device_count() > 0:
        yield
        return
    count = torch.accelerator.device_count
    torch.accelerator.device_count = lambda: 1
    try:
        yield
    finally:
        torch.accelerator.device_count = count
