"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Read when BLAS is loaded. Tests run beside each other, so the threads of one would wait for cores
# that the others have, spinning; those that are about threads ask for them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Where JAX has the GPU, it would take most of its memory from the tests beside it.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# Selenium brings trio, whose plugin for Hypothesis has every worker look for garbage.
os.environ.setdefault("HYPOTHESIS_NO_PLUGINS", "1")

import numpy as np
import pytest
from argand import Device, devices
from argand.runtime.plan import WGMMA_TARGET

from tests.collected_parts import is_left_out, rotated
from tests.covers import EXHAUSTIVE, keep_cover
from tests.gpu_files import HAS_GPU, gpu_files

ROOT = Path(__file__).resolve().parent.parent
RUN_SNAKEMAKE = ("workflow/rules/", "workflow/report/", "workflow/preflight/test_file_names")
"""Tests that have Snakemake run: one process, which imports it once, forks for all of a worker."""
DATA = ROOT.parent / "shared" / "data"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leaves out a file of which nothing can run: its parameters take longer than all else.

    `test_gpu_files.py` has them collected, and a file that is named is collected always.
    """
    return True if is_left_out(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collects all tests from another folder on in each worker, and looks for no garbage.

    To rewrite the asserts takes as long as to collect what is rewritten, so workers keep it for
    each other, also where ``PYTHONDONTWRITEBYTECODE`` has every process compile for itself.
    """
    gc.disable()
    keep, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    session.config.args[:] = _rotated(session.config)
    try:
        return (yield)
    finally:
        sys.dont_write_bytecode = keep
        gc.freeze()
        gc.enable()


def _rotated(config: pytest.Config) -> list[str]:
    """The folders of all tests in the order of this worker; else what is given.

    Beside ``--ignore`` too: pytest collects a folder that is named whatever that says.
    Before 9.2 pytest loses the parameters of a conftest's fixtures in a folder that it comes back
    to, so that workers would disagree.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    all_of_them = config.args == ["tests"] and not config.option.ignore
    if not all_of_them or not worker.isdecimal() or pytest.version_tuple < (9, 2):
        return config.args
    workers = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    return list(map(str, rotated(ROOT / "tests", int(worker), workers)))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Looks for garbage once at the end: pytest does so five times, which takes seconds."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup() -> None:
    """Has torch round no products to tf32: its peers allow it for the whole process."""
    if HAS_GPU and "torch" in sys.modules:
        sys.modules["torch"].backends.cuda.matmul.allow_tf32 = False


def pytest_report_header() -> list[str]:
    if HAS_GPU:
        return []
    count = len(gpu_files(ROOT / "tests"))
    return [f"no NVIDIA GPU answers, or CuPy is not installed: {count} files of tests are left out"]


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Makes items of what the short run takes alone: of one test there are 1700 combinations."""
    yield
    if not EXHAUSTIVE:
        keep_cover(metafunc)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not EXHAUSTIVE:
        left = [item for item in items if item.get_closest_marker("exhaustive")]
        out = set(left)
        items[:] = [item for item in items if item not in out]
        config.hook.pytest_deselected(items=left)
    # Runs of the workflow wait for their jobs and, under Slurm, for its clock. Begun first, and by
    # one worker, they do so beside all other tests and not beside each other. Workers must agree on
    # the order, wherever they began.
    items.sort(key=lambda item: (_late(item), item.path))
    if HAS_GPU:
        return
    skip = pytest.mark.skip(reason="no NVIDIA GPU answers, or CuPy is not installed")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)


def _late(item: pytest.Item) -> int:
    runs = any(name in item.nodeid for name in RUN_SNAKEMAKE)
    return 0 if "test_slurm" in item.nodeid else 1 if runs else 2


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded by the test's name: other tests do not change its numbers."""
    return np.random.default_rng(list(request.node.nodeid.encode()))


@pytest.fixture(scope="session")
def gpu() -> Device:
    """The first GPU."""
    return next(device for device in devices() if device.backend == "cuda")


@pytest.fixture
def cp(gpu: Device) -> Any:
    """CuPy, for a test that needs a GPU."""
    import cupy

    return cupy


@pytest.fixture
def wgmma(gpu: Device) -> None:
    """Skips where the first GPU lacks the wgmma family of kernels."""
    if gpu.target != WGMMA_TARGET:
        pytest.skip(f"the wgmma family needs {WGMMA_TARGET}, {gpu.name} is {gpu.target}")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Measured data beside the repository; tests that need it skip where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"the folder of real data {DATA} is not on this machine")
    return DATA
