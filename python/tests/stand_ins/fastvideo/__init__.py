"""A stand-in for fastvideo 0.2.1."""

from fastvideo.entrypoints.video_generator import VideoGenerator

__all__ = ["VideoGenerator"]
