"""In which order a worker collects the folders of tests."""

from __future__ import annotations

from pathlib import Path

from tests.gpu_files import HAS_GPU, needs_a_gpu

DEEP = ("kernels", "workflow")
"""Folders whose own folders are parts: most tests are in them."""


def is_left_out(path: Path) -> bool:
    """Whether nothing in a file can run here: a GPU is needed from its first test to its last."""
    return not HAS_GPU and needs_a_gpu(path)


def parts(tests: Path) -> list[Path]:
    """The folders and files that hold all tests, each once."""
    deep = [tests / name for name in DEEP]
    found = [path for folder in (tests, *deep) for path in sorted(folder.iterdir())]
    folders = [path for path in found if path.is_dir() and path.name != "__pycache__"]
    files = [path for path in found if path.match("test_*.py") and not is_left_out(path)]
    return [path for path in (*folders, *files) if path not in deep]


def rotated(tests: Path, worker: int, workers: int) -> list[Path]:
    """The parts from that on which falls to a worker: each begins with others."""
    every = parts(tests)
    first = len(every) * worker // workers
    return every[first:] + every[:first]
