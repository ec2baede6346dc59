"""Fixtures of the workflow's tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from argand import Device, devices
from circuits_read_here import read_here
from shared_runs import QUICK, TINY, finish_with_report, made_once, session_folder

from tests.covers import EXHAUSTIVE
from workflow.circuits import qiskit_text
from workflow.files import names, text_attributes
from workflow.inputs import source_attributes
from workflow.measuring import samplers, timing
from workflow.readers import phasing


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Device:
    """The CPU, and a GPU where one answers: what streams through it is the same."""
    return next(device for device in devices() if device.backend == request.param)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a tmpfs; limits on files are tested instead")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="session", autouse=True)
def kept_bytecode(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps what jobs compile of Python for the session, where none may lie beside the sources.

    Many jobs import the same packages, and each would compile them. Python looks in the same folder
    for what is installed and has been compiled: there is a link to what this process has imported,
    and to Snakemake. All else is compiled once.
    """

    def make(folder: Path) -> None:
        every = [getattr(module, "__cached__", None) for module in list(sys.modules.values())]
        imported = [name for name in every if isinstance(name, str)]  # torch.ops has any attribute
        packages = Path(sysconfig.get_path("purelib")).glob("snakemake*")
        snakemake = chain.from_iterable(package.rglob("*.pyc") for package in packages)
        for compiled in (*map(Path, imported), *snakemake):
            if compiled.is_file():
                own = folder.joinpath(*compiled.parent.parent.parts[1:])
                own.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    (own / compiled.name).symlink_to(compiled)

    with pytest.MonkeyPatch.context() as environ:
        if sys.dont_write_bytecode:
            environ.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            folder = made_once(session_folder(tmp_path_factory) / "bytecode", make)
            environ.setenv("PYTHONPYCACHEPREFIX", str(folder))
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Lets `QUICK` begin the processes that tests start, where they have no ``sitecustomize``."""

    def make(folder: Path) -> None:
        (folder / "sitecustomize.py").write_text(QUICK)

    folder = made_once(session_folder(tmp_path_factory) / "quick-jobs", make)
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module", autouse=True)
def quick_measuring() -> Iterator[None]:
    """The same in this process, for all modules of these tests; that of the clock is elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "REPEATS", 1)
        patch.setattr(timing, "SECONDS", 1e-9)
        patch.setattr(samplers, "_MAX_BATCH", 1)
        yield


@pytest.fixture(scope="module", autouse=True)
def attributes_without_a_fork() -> Iterator[None]:
    """Reads texts of a user's file in this process, where no damage is looked for.

    A fork of a process that has collected all tests takes 20 ms of a core, and each staging of a
    file makes some. Where HDF5 reads for ever after all, the system ends this process.
    """

    def here(read: Callable[[], Any]) -> Any:
        signal.setitimer(signal.ITIMER_PROF, 60)
        try:
            return json.loads(json.dumps(read()))
        except Exception:  # as of a fork that fails
            return None
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    with pytest.MonkeyPatch.context() as patch:
        for module in (names, phasing, source_attributes, text_attributes):
            patch.setattr(module, "guarded", here)
        yield


@pytest.fixture(scope="module", autouse=True)
def circuits_without_a_process() -> Iterator[None]:
    """Has Qiskit read circuits in this process, where its limits are not looked for.

    A process imports Qiskit, which takes as long as ten circuits; the exhaustive run has them all.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not EXHAUSTIVE:
            patch.setattr(qiskit_text, "_read", read_here)
        yield


@pytest.fixture(scope="session")
def tiny_run(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of `TINY` with its report: to read, or to copy."""

    def make(folder: Path) -> None:
        (folder / "study.yaml").write_text(TINY)
        finish_with_report(root, folder)

    return made_once(session_folder(tmp_path_factory) / "tiny-run", make)
