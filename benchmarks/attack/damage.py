"""Damaged files of every kind, read by the jobs that read them: an error, or the same result."""

from __future__ import annotations

import hashlib
import os
import runpy
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np

from benchmarks.attack.campaign import Attempt, require
from benchmarks.attack.isolation import isolated
from benchmarks.attack.studies import contents
from workflow.preflight.loading import load_study

_PAGE = 4096


class _Files(dict[str, Any]):
    """Named files of a job, as Snakemake hands them to its script."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


@dataclass(frozen=True)
class Job:
    """A script of the workflow, what it reads and writes, and which of that is damaged."""

    script: str
    part: str
    reads: Mapping[str, Any]
    writes: Mapping[str, str]
    damaged: str

    def run(self, root: Path, folder: Path) -> Any:
        """Return the bytes that the job makes of the files in a folder, in this process."""
        from workflow import threads

        threads.hold_blas = lambda: None  # this process has NumPy already
        os.chdir(folder)
        name = self.part.partition("/")[0]
        out = {key: str(folder / "made" / path) for key, path in self.writes.items()}
        for path in out.values():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        stand_in = SimpleNamespace(
            input=_Files(self.reads), output=_Files(out), log=[str(folder / "made" / "log")],
            params=SimpleNamespace(case=load_study(Path("study.yaml")).case_json(name)),
            wildcards=SimpleNamespace(part=self.part, workload=name), threads=1,
        )  # fmt: skip
        script = root / "workflow" / "scripts" / f"{self.script}.py"
        runpy.run_path(str(script), init_globals={"snakemake": stand_in})
        return {
            key: _contents_of(Path(path)) for key, path in out.items() if not path.endswith(".html")
        }


def _contents_of(path: Path) -> Any:
    return contents(path) if path.suffix == ".h5" else path.read_text()


def _part(name: str) -> dict[str, str]:
    return {
        "staged": f"results/staged/{name.partition('/')[0]}.h5", "run": f"results/runs/{name}.h5",
    }  # fmt: skip


def _verify(part: str, damaged: str) -> Job:
    return Job("verify", part, _part(part), {"records": "records.jsonl"}, damaged)


def _deliver(part: str, damaged: str) -> Job:
    whole = part.partition("/")[0]
    records = {"records": f"results/records/{whole}.jsonl", "own": f"results/records/{part}.jsonl"}
    return Job("deliver", part, {**_part(part), **records}, {"product": "product.h5"}, damaged)


def _tabulate(damaged: str) -> Job:
    records = [f"results/records/{name}.jsonl" for name in ("product", "beams", "likely")]
    reads = {"records": records, "growth": "results/records/growth.json"}
    writes = {
        f"{table}_{kind}": f"{table}.{kind}"
        for table, kinds in (("performance", "csv md h5 html"), ("accuracy", "csv md html"))
        for kind in kinds.split()
    }  # fmt: skip
    return Job("tabulate", "product", reads, writes, damaged)


def _stage(name: str, file: str, damaged: str) -> Job:
    return Job("stage", name, {"files": [file]}, {"staged": "staged.h5"}, damaged)


_SHARDS = "results/products/beams/1-of-2.h5"
JOBS: dict[str, tuple[Job, ...]] = {
    "staged": (
        _verify("product", "results/staged/product.h5"),
        _deliver("product", "results/staged/product.h5"),
        _verify("beams/1-of-2", "results/staged/beams.h5"),
    ),
    "runs": (
        _verify("product", "results/runs/product.h5"),
        _deliver("product", "results/runs/product.h5"),
    ),
    "products": (
        _stage("likely", "results/products/beams.h5", "results/products/beams.h5"),
        _stage("likely", "results/products/beams.h5", _SHARDS),
    ),
    "records": (
        _tabulate("results/records/product.jsonl"),
        _deliver("product", "results/records/product.jsonl"),
    ),
    "growth": (_tabulate("results/records/growth.json"),),
    "inputs": (_stage("product", "in.h5", "in.h5"),),
}
"""The jobs that read each kind of file."""


def damage(files: str) -> Callable[[Attempt], None]:
    """Return the attack on a kind of file of `JOBS`."""

    def make(attempt: Attempt) -> None:
        ground, folder = attempt.ground, attempt.folder
        ground.copy(folder)
        job = JOBS[files][attempt.number % len(JOBS[files])]
        path = folder / job.damaged
        how, damaged = _damaged(path, attempt.rng)
        expected = _undamaged(job, attempt)
        path.write_bytes(damaged)
        found = isolated(lambda: job.run(ground.root, folder))
        what = f"{job.damaged} with {how}, read by {job.script}"
        require(found.how != "ended", f"{what}: {found}")
        if found.how == "returned" and found.value != expected:
            require(files == "inputs" and _says_source(found.value, damaged), f"{what}: silent")

    return make


def _undamaged(job: Job, attempt: Attempt) -> Any:
    """Return a job's result of whole files. Raises RuntimeError where that is an error."""
    known, key = attempt.ground.known, f"{job.script} {job.part}"
    if key not in known:
        control = isolated(lambda: job.run(attempt.ground.root, attempt.folder))
        if control.how != "returned":
            log = (attempt.folder / "made" / "log").read_text(errors="replace")
            raise RuntimeError(f"{key} fails on whole files: {control} {log[-500:]}")
        known[key] = control.value
        shutil.rmtree(attempt.folder / "made")
    return known[key]


def _says_source(made: Mapping[str, Any], data: bytes) -> bool:
    """Return whether what came of another input says so: by the SHA-256 of what was read."""
    return hashlib.sha256(data).hexdigest() in repr(made)


def _damaged(path: Path, rng: np.random.Generator) -> tuple[str, bytes]:
    """Return a file's bytes with one damage, and its name."""
    ways = [_bit, _cut, _word, _page, *([_chunks] if path.suffix == ".h5" else [_digit, _line])]
    data = path.read_bytes()
    for _ in range(20):
        way = ways[int(rng.integers(len(ways)))]
        changed = bytearray(data)
        how = way(changed, rng, path)
        if how and bytes(changed) != data:
            return how, bytes(changed)
    raise RuntimeError(f"{path} cannot be damaged")


def _bit(data: bytearray, rng: np.random.Generator, _: Path) -> str:
    place, bit = int(rng.integers(len(data))), int(rng.integers(8))
    data[place] ^= 1 << bit
    return f"bit {bit} of byte {place} flipped"


def _cut(data: bytearray, rng: np.random.Generator, _: Path) -> str:
    length = 0 if rng.random() < 0.2 else int(rng.integers(len(data)))
    del data[length:]
    return f"all after {length} bytes cut"


def _word(data: bytearray, rng: np.random.Generator, _: Path) -> str:
    """Change a word so that Fletcher's checksum, modulo 2^16 - 1, does not see it."""
    words = np.frombuffer(data[: len(data) // 2 * 2], "<u2")
    places = np.flatnonzero((words == 0) | (words == 0xFFFF))
    if not len(places):
        return ""
    place = 2 * int(rng.choice(places))
    data[place : place + 2] = bytes(255 - byte for byte in data[place : place + 2])
    return f"the word at {place} from zeros to ones, or back"


def _page(data: bytearray, rng: np.random.Generator, _: Path) -> str:
    size = min(_PAGE, max(2, len(data) // 8))
    start = int(rng.integers(max(1, len(data) // size))) * size
    data[start : start + size] = b"\xff" * len(data[start : start + size])
    return f"{size} bytes of 0xFF from {start} on"


def _chunks(data: bytearray, rng: np.random.Generator, path: Path) -> str:
    """Put two chunks of the same size in each other's place."""
    found: dict[int, list[int]] = {}

    def visit(_: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.chunks:
            item.id.chunk_iter(lambda one: found.setdefault(one.size, []).append(one.byte_offset))

    with h5py.File(path) as file:
        file.visititems(visit)
    pairs = [(size, places) for size, places in found.items() if len(places) > 1]
    if not pairs:
        return ""
    size, places = pairs[int(rng.integers(len(pairs)))]
    first, second = (int(place) for place in rng.choice(places, 2, replace=False))
    one, other = bytes(data[first : first + size]), bytes(data[second : second + size])
    data[first : first + size], data[second : second + size] = other, one
    return f"the chunks at {first} and {second} exchanged"


def _digit(data: bytearray, rng: np.random.Generator, _: Path) -> str:
    places = [place for place, byte in enumerate(data) if chr(byte).isdigit()]
    place = int(rng.choice(places))
    data[place] = ord("0") + (data[place] - ord("0") + int(rng.integers(1, 10))) % 10
    return f"another digit at {place}"


def _line(data: bytearray, rng: np.random.Generator, _: Path) -> str:
    lines = bytes(data).splitlines(keepends=True)
    gone = int(rng.integers(len(lines)))
    data[:] = b"".join(line for number, line in enumerate(lines) if number != gone)
    return f"without line {gone + 1}"
