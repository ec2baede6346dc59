"""``argand doctor``: what this machine has, and what argand would use of it."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from importlib import metadata, util
from pathlib import Path

from argand.command.study import missing_packages, study_tree
from argand.defaults import ON_GPU
from argand.device import HOW_TO_INSTALL, DeviceError, cpu, gpu, resolve
from argand.precision import EXACT_PRECISIONS, PRECISIONS
from argand.runtime.compile.compiler import cache_folder
from argand.runtime.compile.cubin_cache import shipped_folder
from argand.runtime.compile.nvrtc import OLDEST, CompileError, nvrtc_version
from argand.runtime.files.own_files import own_folder
from argand.runtime.memory.workspace_limit import VARIABLE, allowed_workspace

PACKAGES = (
    "numpy", "scipy", "cupy-cuda12x", "cupy-cuda13x", "torch", "jax", "h5py", "snakemake", "qiskit",
)  # fmt: skip
"""Packages whose versions a question about a result begins with."""
_ABSENT = "not installed"


def report() -> list[tuple[str, str]]:
    """Return pairs of a subject and what is true of it, one for each line."""
    return [
        ("argand", f"{_version('argand')} in {Path(__file__).parents[1]}"),
        ("python", f"{platform.python_version()}, {platform.system()} {platform.machine()}"),
        ("packages", ", ".join(_versions())),
        ("cpu", f"{cpu()}, {cpu().memory_bytes / 2**30:.0f} GiB of memory"),
        *_gpus(),
        *_uses(),
        ("workspace", _workspace()),
        ("cache", _cache(cache_folder())),
        ("shipped kernels", _shipped()),
        ("studies", _studies()),
    ]


def main() -> int:
    """Print the report. The exit status is 1 where a GPU is there that argand cannot use."""
    pairs = report()
    width = max(len(subject) for subject, _ in pairs)
    for subject, text in pairs:
        print(f"{subject:{width}}  {text}")
    return 1 if any(text.startswith("cannot be used") for _, text in pairs) else 0


def _versions() -> Iterator[str]:
    found = ((name, _version(name)) for name in PACKAGES)
    return (f"{name} {version}" for name, version in found if version != _ABSENT)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return _ABSENT


def _gpus() -> list[tuple[str, str]]:
    """Return each GPU and the kernels for it, or why there is none."""
    node = Path("/dev/nvidiactl").exists()
    if util.find_spec("cupy") is None:
        if not node:
            return [("gpu", "none: no NVIDIA driver is loaded, and CuPy is not installed")]
        return [("gpu", f"cannot be used: CuPy is not installed: {HOW_TO_INSTALL}")]
    return _seen_by_cupy(node=node)


def _seen_by_cupy(*, node: bool) -> list[tuple[str, str]]:
    import cupy

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return [("gpu", f"{'cannot be used' if node else 'none'}: {error}")]
    return [(f"gpu {index}", _described(index)) for index in range(count)]


def _described(index: int) -> str:
    try:
        device = gpu(index)
    except DeviceError as error:
        return f"cannot be used: {error}"
    arch = device.require_arch()
    try:
        compiler = compiler_named(nvrtc_version())
    except CompileError as error:
        return f"cannot be used: {error}"
    return (
        f"{device}, {device.memory_bytes / 2**30:.0f} GiB, {device.driver}; kernels for "
        f"{arch.target}, {arch.name}, by {compiler}"
    )


def compiler_named(version: str) -> str:
    """Return NVRTC with its version, and what is wrong with one that is too old."""
    if tuple(map(int, version.split("."))) >= OLDEST:
        return f"NVRTC {version}"
    needed = "{}.{}".format(*OLDEST)
    return f"NVRTC {version}, under which some are slower: {needed} or newer is needed"


def _uses() -> Iterator[tuple[str, str]]:
    """Yield the precision of a call that names none, and the precisions that there are."""
    try:
        device = resolve()
    except DeviceError:
        device = cpu()
    if device.arch is None:
        yield "default", "fp32, or fp64 for data of fp64, by NumPy's BLAS and SciPy on the CPU"
        yield "precisions", f"{', '.join(PRECISIONS)}; but for fp32 and fp64 models of a GPU's"
        return
    chosen = ", ".join(f"{name} for a {operation}" for operation, name in ON_GPU.items())
    yield "default", f"{chosen}; fp64 for data of fp64"
    able = [name for name, row in PRECISIONS.items() if row.min_sm <= device.arch.sm]
    fewest, *_, most = EXACT_PRECISIONS
    yield "precisions", f"{', '.join(able)}, {fewest} to {most}"


def _shipped() -> str:
    """Return the package of kernels that were compiled elsewhere."""
    folder = shipped_folder()
    if folder is None:
        return f"argand-cubins is {_ABSENT}: first calls compile their kernels"
    return f"{len(list(folder.glob('*.cubin')))} in {folder}"


def _workspace() -> str:
    """Return the memory that a call on a GPU may take beside operands and result."""
    allowed = allowed_workspace()
    return f"no limit ({VARIABLE})" if allowed is None else f"at most {allowed} bytes a call"


def _cache(folder: Path) -> str:
    """Return where compiled kernels and measured plans are kept, or why they are not."""
    try:
        with own_folder(folder):
            pass
    except FileNotFoundError:
        pass  # the first compiled kernel makes it
    except OSError as error:
        return f"NOT usable, so that calls on a GPU fail: {error}"
    held = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free / 2**30
    writable = "" if os.access(there, os.W_OK) else ", NOT writable: every process compiles again"
    return (
        f"{folder}, {len(held)} files of {sum(held) / 2**20:.1f} MiB, {free:.0f} GiB free{writable}"
    )


def _studies() -> str:
    missing = missing_packages()
    if missing:
        return f'not possible: {", ".join(missing)} not installed: pip install "argand[workflow]"'
    return f"by the workflow in {study_tree()}" if study_tree() else "not possible: no workflow"
