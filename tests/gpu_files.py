"""Which files of tests need a GPU from their first test to their last."""

from __future__ import annotations

import re
from pathlib import Path

from argand import devices

HAS_GPU = any(device.backend == "cuda" for device in devices())
_MARK = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.gpu\b", re.MULTILINE)


def needs_a_gpu(path: Path) -> bool:
    """Whether a path is a file of tests that all need one, as its first mark says."""
    return path.match("test_gpu_*.py") and bool(_MARK.search(path.read_text()))


def gpu_files(folder: Path) -> list[Path]:
    """Return the files of a folder that need a GPU from their first test to their last."""
    return [path for path in sorted(folder.rglob("test_gpu_*.py")) if needs_a_gpu(path)]
