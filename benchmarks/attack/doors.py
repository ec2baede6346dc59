"""Links, pipes and folders where Argand writes, and strangers' files in the cache of kernels."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
from argand.runtime.compile import compiler as nvrtc

from benchmarks.attack.campaign import Attempt, NotTriedError, require
from benchmarks.attack.isolation import Outcome, isolated
from workflow.jobs.gpu_lease import Lease
from workflow.jobs.lease_log import logged
from workflow.storage.run_folder import hold_folder, remove_leftovers
from workflow.storage.staged import write_staged
from workflow.workloads import Staged

_MINE = "mine\n"
_OURS = ("workflow.", "argand.")
"""Modules whose errors a user reads as messages; others end in a traceback."""
_SECONDS = 20.0


def _placed(path: Path, how: str) -> Path:
    """Return a link to a file, a pipe, or a folder in a path's place; the file that must stay."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.parents[1] / "outside"
    target.write_text(_MINE)
    if how == "link":
        path.symlink_to(target)
    elif how == "hard link":
        os.link(target, path)
    elif how == "pipe":
        os.mkfifo(path)
    else:
        (path / "inside").mkdir(parents=True)
    return target


def _hold(results: Path) -> None:
    hold_folder(results).close()
    remove_leftovers(results)


def _lease(log: Path) -> None:
    with logged(Lease((), 0.0, "an attack"), "job", logging.getLogger("attack"), log):
        pass


def _stage(path: Path) -> None:
    staged = Staged({"x": np.arange(8.0)}, {"x": ("n",)})
    write_staged(path, staged, workload="x", kind="softmax")


DOORS: dict[str, tuple[str, Callable[[Path], None], tuple[str, ...]]] = {
    "lock": (".lock", lambda path: _hold(path.parent), ("link", "hard link", "pipe", "folder")),
    "lease log": ("logs/gpu-leases.jsonl", _lease, ("link", "hard link", "pipe", "folder")),
    "staged": ("staged/x.h5", _stage, ("link", "hard link", "pipe", "folder")),
    "leftover": (".x.h5.01234567.part", lambda path: _hold(path.parent), ("link", "folder")),
}
"""A file in results/, what writes there, and what stands in its place."""
_CACHE = ("forged, open folder", "forged, other owner", "forged, link", "pipe", "bit", "cut")
_CASES = [(door, how) for door, (_, _, ways) in DOORS.items() for how in ways]
_CASES += [("cache", how) for how in _CACHE]


def doors(attempt: Attempt) -> None:
    """Try one of the doors in turn."""
    door, how = _CASES[attempt.number % len(_CASES)]
    if door == "cache":
        _cache(attempt, how)
        return
    name, act, _ = DOORS[door]
    path = attempt.folder / "results" / name
    target = _placed(path, how)
    found = isolated(lambda: act(path), seconds=_SECONDS)
    what = f"{how} in place of results/{name}"
    require(target.read_text() == _MINE, f"{what}: the file it leads to was overwritten")
    require(found.how != "ended", f"{what}: {found}")
    clear = found.how == "returned" or found.error.startswith(_OURS) or str(path) in found.text
    require(clear, f"{what}: a traceback, {found}")
    if door in ("lock", "leftover"):  # Snakemake's onstart turns no other errors into messages
        clear = found.how == "returned" or found.error.startswith(_OURS)
        require(clear, f"{what}: a traceback, {found}")


_SOURCE = 'extern "C" __global__ void f(float* x) { x[0] = %d; }\n'


def _cache(attempt: Attempt, how: str) -> None:
    """Put a cubin of another source under the name of ours, as another user."""
    if how.endswith("owner") and os.geteuid():
        raise NotTriedError("only root can make a file another user's")
    cache = attempt.folder / "cache"
    expected, forged = (_compiled(_SOURCE % value, cache) for value in (1, 2))
    path = Path(expected.value["path"])
    described = json.dumps({"kernels": forged.value["kernels"], "warnings": []}).encode()
    cubin = forged.value["cubin"]
    note = hashlib.sha256(described + cubin).hexdigest().encode() + b"\n" + described
    files = {path: cubin, path.with_suffix(".checked"): note}
    if how.startswith("forged"):
        for file, data in files.items():
            file.unlink()
            beside = attempt.folder / f"planted-{file.name}"
            (beside if how.endswith("link") else file).write_bytes(data)
            if how.endswith("link"):
                file.symlink_to(beside)
            elif how.endswith("owner"):
                os.chown(file, 12345, 12345)
        if how.endswith("folder"):
            cache.chmod(0o777)
    elif how == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        data = bytearray(path.read_bytes())
        if how == "bit":
            data[int(attempt.rng.integers(len(data)))] ^= 1 << int(attempt.rng.integers(8))
        path.write_bytes(data if how == "bit" else data[: len(data) // 2])
    found = _compiled(_SOURCE % 1, cache)
    what = f"{how} in the cache of kernels"
    require(found.how != "ended", f"{what}: {found}")
    if found.how == "returned":
        require(found.value["cubin"] == expected.value["cubin"], f"{what}: it is loaded")
    else:
        require(found.error.startswith(_OURS), f"{what}: a traceback, {found}")


def _compiled(source: str, cache: Path) -> Outcome:
    def call() -> dict[str, object]:
        os.environ["ARGAND_CACHE"] = str(cache)
        made = nvrtc.compile_cubin(source, "sm_80")
        kernels = {name: asdict(taken) for name, taken in made.resources.items()}
        return {"path": str(made.path), "cubin": made.cubin, "kernels": kernels}

    found = isolated(call, memory=4 << 30, seconds=_SECONDS)
    if found.how == "raised" and "NVRTC cannot be used" in found.text:
        raise NotTriedError("NVRTC is not installed")
    return found
