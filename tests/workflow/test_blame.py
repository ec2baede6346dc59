"""An error of the system names the file that it is about, the cause and what to do."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand.device import cpu

from workflow.data import Staged
from workflow.files import hdf5_file
from workflow.files.input_error import InputError
from workflow.inputs import hdf5_operands
from workflow.inputs.axes import Operand
from workflow.inputs.hdf5_operands import read_operand
from workflow.preflight.loading import load_study
from workflow.steps.execute import execute
from workflow.steps.staging import stage
from workflow.storage.datasets import open_written
from workflow.storage.failures import DataError, WriteError
from workflow.storage.files import atomic_text
from workflow.storage.runs import Result, open_run, write_run
from workflow.storage.staged import open_staged, write_staged
from workflow.workloads.base import Workload

LOG = logging.getLogger("test")
STAGED = Staged({"x": np.arange(1 << 15, dtype=np.float64)}, {"x": ("n",)})


def workload(device_memory: str | None = None) -> Workload:
    """Its operands take 1.3 MiB, and each of its results 8 MiB."""
    case: dict[str, Any] = {"kind": "gemm", "m": 1024, "n": 1024, "k": 40, "batch": 1}
    case |= {"device_memory": device_memory} if device_memory else {}
    given = {"precisions": ["fp32"], "baselines": "none", "workloads": {"w": case}}
    return load_study(given).workload("w")


@pytest.mark.parametrize("device_memory", [None, "1 MiB"], ids=["whole", "streamed"])
def test_a_disk_that_is_full_while_a_run_reads_its_operands(
    tmp_path: Path, small_disk: Path, device_memory: str | None
) -> None:
    job, staged, run = workload(device_memory), tmp_path / "staged.h5", small_disk / "run.h5"
    stage(job, [], staged, LOG)
    with pytest.raises(WriteError) as raised:
        execute(job, staged, run, cpu(), LOG)
    text = str(raised.value)
    assert text.startswith(f"{run}: cannot be written (No space left on device): ")
    assert f"the device that holds {small_disk} has " in text
    assert text.endswith(" free; make room there, or run in another folder")
    assert "staged" not in text
    assert list(small_disk.iterdir()) == []


LIMITED = """
import errno, logging, os, resource, sys
from pathlib import Path
from argand.device import cpu
sys.path.insert(0, sys.argv[2])
from test_blame import LOG, execute, stage, workload
from input_files import put
folder = Path(sys.argv[1])
job = workload(*sys.argv[3:])
stage(job, [], folder / "staged.h5", LOG)
resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
execute(job, folder / "staged.h5", folder / "run.h5", cpu(), LOG)
"""


@pytest.mark.parametrize("device_memory", [[], ["1 MiB"]], ids=["whole", "streamed"])
def test_a_limit_on_the_size_of_files_while_a_run_reads_its_operands(
    tmp_path: Path, root: Path, device_memory: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path), str(Path(__file__).parent), *device_memory],
        capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": f"{root}:{root / 'kernels'}"},
    )  # fmt: skip
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"WriteError: {tmp_path}/run.h5: cannot be written (File too large: " in last
    assert "ulimit -f" in last
    assert not list(tmp_path.glob("*.part"))


def test_a_read_only_file_system(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for write in (
        lambda path: atomic_text(path, "text"),
        lambda path: write_staged(path, STAGED, workload="w", kind="gemm"),
    ):
        with pytest.raises(WriteError, match=r"disk/w: cannot be written \(Read-only file system"):
            write(small_disk / "w")


FAILED_SYNCS = {
    errno.ENOSPC: "No space left on device",
    errno.EDQUOT: "quota of this user",
    errno.EIO: "its device fails",
    errno.EFBIG: "ulimit -f",
}


@pytest.mark.each_value
@pytest.mark.parametrize("number", FAILED_SYNCS)
@pytest.mark.parametrize("size", [4, 1 << 20, 1 << 27], ids=["at the end", "once", "meanwhile"])
def test_an_error_that_a_sync_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, size: int
) -> None:
    """A disk may refuse what it took before: the error then has no name of a file."""

    def fsync(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    path, data = tmp_path / "w.h5", np.zeros(size // 4, np.float32)
    with pytest.raises(WriteError, match="cannot be written") as raised:
        write_staged(path, Staged({"x": data}, {"x": ("n",)}), workload="w", kind="gemm")
    assert str(raised.value).startswith(f"{path}: ")
    assert FAILED_SYNCS[number] in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def result(data: np.ndarray | None) -> Result:
    return Result(
        implementation="argand", precision="fp64", algorithm="", device="", backend="cpu", data=data
    )


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A staged file and a run file."""
    staged, run = tmp_path / "staged.h5", tmp_path / "run.h5"
    write_staged(staged, STAGED, workload="w", kind="gemm")
    with write_run(run, "w", {}) as writer:
        writer.add(result(np.arange(1 << 15, dtype=np.float64)))
    return staged, run


def flip(path: Path) -> None:
    """One bit of the data, which the seal does not cover."""
    data = bytearray(path.read_bytes())
    at = data.index(np.arange(100, 108, dtype=np.float64).tobytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damaged", ["staged", "run"])
def test_of_two_files_that_are_read_the_damaged_one_is_named(
    files: tuple[Path, Path], damaged: str
) -> None:
    staged, run = files
    flip({"staged": staged, "run": run}[damaged])
    named = pytest.raises(DataError, match=rf"{damaged}\.h5: missing, truncated or damaged")
    with named, open_staged(staged) as operands, open_run(run) as results:
        if damaged == "staged":
            operands.read()
        else:
            results.read(results.results[0])


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE, errno.ENOMEM, errno.EACCES])
@pytest.mark.parametrize("name", [None, "elsewhere"])
def test_other_errors_are_not_told_of_a_file_that_is_read_or_written(
    tmp_path: Path, files: tuple[Path, Path], number: int, name: str | None
) -> None:
    given = (number, os.strerror(number), *([name] if name else []))
    written = write_run(tmp_path / "written.h5", "w", {})
    for opened in (open_staged(files[0]), open_run(files[1]), written):
        with pytest.raises(OSError, match=r"^\[Errno \d+\] [^;]*$") as raised, opened:
            raise OSError(*given)
        assert raised.value.errno == number


def test_a_key_that_code_lacks_is_not_told_of_a_file_that_is_read(files: tuple[Path, Path]) -> None:
    for opened in (open_staged(files[0]), open_run(files[1])):
        with pytest.raises(KeyError, match="frequency"), opened:
            raise KeyError("frequency")
    with (
        pytest.raises(DataError, match=r"run\.h5: incomplete"),
        open_written(files[1], "run") as file,
    ):
        file["absent"]


def test_no_descriptors_left_is_no_damage(files: tuple[Path, Path]) -> None:
    import hdf5plugin  # noqa: F401  (as a process that has read an input before)

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        with contextlib.suppress(OSError):
            while True:
                stack.enter_context(Path("/dev/null").open())
        with (
            pytest.raises(DataError, match=r"staged\.h5: cannot be read \(Too many open files"),
            open_staged(files[0]),
        ):
            pass
        with (
            pytest.raises(InputError, match=r"run\.h5 cannot be read \(Too many open files"),
            hdf5_file.opened(files[1]),
        ):
            pass


def test_a_full_scratch_disk_is_not_the_inputs_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from input_files import OneInput, put

    path = put(tmp_path / "in.h5", x=np.zeros((64, 64), np.complex64))
    monkeypatch.setattr(hdf5_operands, "machine_memory", lambda: 40_000)
    monkeypatch.setattr(hdf5_operands, "scratch_folder", lambda: tmp_path)

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(WriteError, match=r"scratch file: cannot be written \(No space left"):
        read_operand(OneInput(file=path, x="x"), Operand("x", ("m", "n")))
