"""Kernels into the cache before anything is measured or watched."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from argand.nvrtc import compile_cubin


def compile_all(jobs: Iterable[tuple[str, str]]) -> None:
    """Compile (source, target) pairs by all cores: NVRTC lets other threads run.

    Raises CompileError where one does not compile.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: compile_cubin(*job), dict.fromkeys(jobs)))
