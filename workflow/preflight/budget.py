"""Disk, memory and time that a study takes of this machine, from its parameters alone.

The time is what its jobs take at least. Nothing is read but the headers of the user's files, and
nothing is made as large as the data.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from argand import DeviceError, Precision, get_precision
from argand.device import Device, available_cores
from argand.precision import any_precision

from workflow.config.file_input import FileInput
from workflow.counted import counted
from workflow.data import Staged
from workflow.steps.pieces import pieces_of, sizes, written_bytes
from workflow.steps.streaming import HOST_BYTES, exceeds, plan_chunks
from workflow.storage.memory import in_words, machine_memory
from workflow.storage.places import visible_above
from workflow.study import Study, outlined
from workflow.workloads.base import Workload

BASE_BYTES = 262 << 20
"""A job's libraries before its data, by benchmarks.pipeline.job_memory."""
CUDA_BYTES = 536 << 20
"""More of a run on a GPU, with PyTorch as a peer; at most 315 MiB without it
(docs/data/h200-job-memory.json)."""
_VERIFY_COPIES = 1.6
"""Peak memory of a verification over its operands and one result."""
_GPU_RUN_COPIES = 1.7
"""Least copies in host memory that runs on a GPU took (docs/data/h200-study-leases.jsonl)."""
_COORDINATE_COPIES = 3
_FLOPS_OF_A_CORE, _FLOPS_OF_A_GPU = 2e11, 2e15
"""Operations a second that none is faster than, at the fastest precision."""
_CALLS = 3
"""Fewest calls of an implementation: the first, a timed one, and one for its result."""
_CORES_ELSEWHERE = 256
"""Cores that a machine elsewhere is taken to have, at most."""
_LISTED = 5
"""Workloads that a message names, the largest."""


@dataclass(frozen=True)
class WorkloadSizes:
    """The needs of one workload: bytes of its files, and operations of one computation.

    ``run`` is the result of each implementation, ``product`` the one that stays, twice where it is
    written as UVH5 too, which has each pair of antennas once; ``computed`` is a copy of operands
    and result, in fp64 where an implementation has them so, and ``copies`` `Workload.run_copies`;
    ``verified`` is what its verification holds at a time, in fp64, and ``whole`` says that it has
    no axis to go through in pieces.
    """

    staged: int
    coordinates: int
    run: int
    product: int
    computed: int
    copies: float
    verified: int
    whole: bool
    flops: float


@dataclass(frozen=True)
class Place:
    """The machine of a study: where its jobs run, and what is free, in bytes."""

    memory: int
    disk: int
    device: Device


def beyond(study: Study, device: Device | None) -> list[str]:
    """Return the needs of a study that this machine does not meet, one mistake a line.

    Args:
        study: a study in which nothing else is wrong.
        device: where its jobs compute; None where other machines compute; only the time that jobs
            take there is known.
    """
    found = {name: _sizes_of(study, name) for name in study.names}
    mistakes = [_too_long(study, name, one, device) for name, one in found.items()]
    if device is not None:
        place = Place(machine_memory(), _room(study), device)
        mistakes += [_too_large(study, name, one, place) for name, one in found.items()]
        mistakes.append(_too_much(study, found, place))
    return [text for text in mistakes if text]


def require_coordinates(workload: Workload, outline: Staged) -> None:
    """Raise ValueError where what stands along a product's axes does not fit into memory.

    The check makes it, and so does every job.
    """
    needed = _COORDINATE_COPIES * workload.coordinate_bytes(outline)
    there = machine_memory()
    if needed > there:
        raise ValueError(
            f"what stands along its axes takes about {in_words(needed)} of memory, this machine "
            f"has {in_words(there)}; make it smaller"
        )


def require_chunks(workload: Workload, outline: Staged) -> None:
    """Raise ValueError where ``device_memory`` holds no chunk of a workload at any precision.

    The jobs of shards, which are smaller, say it themselves.
    """
    allowed = workload.case.device_memory_bytes()
    if allowed is None or workload.case.shards > 1:
        return
    said = ""
    for precision in _precisions(workload):
        try:
            if exceeds(workload, outline, precision, allowed):
                plan_chunks(workload, outline, precision, allowed)
            return
        except DeviceError as error:
            said = str(error)
    if said:
        raise ValueError(f"device_memory: a chunk {said}")


def summary(study: Study) -> str:
    """Return the disk that a study takes and what is free there, in words."""
    needed = _disk_bytes(study, {name: _sizes_of(study, name) for name in study.names})
    return f"{in_words(needed)} of disk in {study.folder}/, {in_words(_room(study))} free"


def disk_of(study: Study, name: str) -> dict[str, int]:
    """Return the bytes of the files that the steps of a workload write, by the step's name."""
    one = _sizes_of(study, name)
    return {"stage": one.staged + one.coordinates, "run": one.run,
            "deliver": one.product + one.coordinates}  # fmt: skip


def _sizes_of(study: Study, name: str) -> WorkloadSizes:
    return _sizes(study.chain(name))


@cache
def _sizes(chain: tuple[str, ...]) -> WorkloadSizes:
    """Return the bytes by what `Study.chain` says: a sweep's cases are checked once."""
    workload, outline = outlined(chain)
    precisions = _precisions(workload)
    results = [written_bytes(workload, outline, precision) for precision in precisions]
    peers = ("fp64", "fp32") if workload.case.baselines != "none" else ()
    of_peers = [written_bytes(workload, outline, get_precision(peer)) for peer in peers]
    pieces = pieces_of(workload, outline)
    automatic = workload.case.precision == "auto"
    chosen = precisions if automatic else [any_precision(workload.case.precision)]
    written = max(written_bytes(workload, outline, precision) for precision in chosen)
    product = workload.product_bytes(outline, written)
    staged = sum(data.nbytes for data in outline.operands.values())
    in_fp64 = of_peers or any(one.output == "complex128" for one in precisions)
    return WorkloadSizes(
        staged=staged,
        coordinates=sum(coordinate.values.nbytes for coordinate in outline.coordinates.values()),
        run=sum(results) + sum(of_peers), product=product * (2 if workload.case.is_exported else 1),
        computed=sizes(workload, outline).in_and_out if in_fp64 else staged + written,
        copies=workload.run_copies(outline), verified=pieces.bytes, whole=pieces.axis is None,
        flops=workload.shape(outline, get_precision("fp64")).flops,
    )  # fmt: skip


def _precisions(workload: Workload) -> list[Precision]:
    return [any_precision(name) for name in workload.case.precisions or ("fp64",)]


def _too_long(study: Study, name: str, one: WorkloadSizes, device: Device | None) -> str:
    """Return a mistake where a run cannot end within the time that the study allows its jobs."""
    on_gpu = study.device == "cuda" or (device is None and study.device != "cpu")
    if on_gpu or (device is not None and device.backend == "cuda"):
        rate, what = _FLOPS_OF_A_GPU, "any GPU"
    else:
        cores = _CORES_ELSEWHERE if device is None else available_cores()
        rate, what = cores * _FLOPS_OF_A_CORE, counted(cores, "core")
    count = len(study.workloads[name].precisions or ())
    hours = _CALLS * count * one.flops / len(study.parts(name)) / rate / 3600
    if hours <= study.most_hours:
        return ""
    return (
        f"workloads.{name}: its run takes {hours:.3g} hours or more on {what} ({one.flops:.3g} "
        f"operations at each of {counted(count, 'precision')}); most_hours allows "
        f"{study.most_hours:g}; make it smaller, or raise most_hours"
    )


def _too_large(study: Study, name: str, one: WorkloadSizes, place: Place) -> str:
    """Return a mistake where a job of a workload needs more memory than the machine has."""
    parts = len(study.parts(name))
    needed = {"stage": _COORDINATE_COPIES * one.coordinates}
    pieces = one.verified if not one.whole else one.verified / parts
    needed["verify"] = int(_VERIFY_COPIES * pieces)
    copies = one.copies if place.device.backend == "cpu" else _GPU_RUN_COPIES
    whole = int(copies * one.computed / parts)
    needed["run"] = HOST_BYTES if _streams(study, name, place) else whole
    step = max(needed, key=lambda name: needed[name])
    total = needed[step] + BASE_BYTES
    if total <= place.memory:
        return ""
    streamed = bool(study.workload(name).splits) and step == "run"
    hint = "; device_memory has it streamed in chunks" if streamed else "; make it smaller"
    return (
        f"workloads.{name}: its {step} job needs about {in_words(total)} of memory, this machine "
        f"has {in_words(place.memory)}{hint}"
    )


def _streams(study: Study, name: str, place: Place) -> bool:
    """Return whether a run streams its data. How much a GPU has is not asked: it may be busy."""
    workload = study.workload(name)
    allowed = workload.case.device_memory_bytes()
    if place.device.backend == "cuda" and allowed is None:
        return bool(workload.splits)
    memory = min(place.memory, allowed or place.memory)
    _, outline = outlined(study.chain(name))
    widest = max(_precisions(workload), key=lambda one: np.dtype(one.output).itemsize)
    return exceeds(workload, outline, widest, memory * len(study.parts(name)))


def _too_much(study: Study, found: dict[str, WorkloadSizes], place: Place) -> str:
    """Return a mistake where all files together are larger than the disk has room for."""
    needed = _disk_bytes(study, found)
    if needed <= place.disk:
        return ""
    by_size = sorted(found, key=lambda name: -_files_bytes(found[name]))
    parts = [
        f"{name} {in_words(found[name].staged + found[name].coordinates)} staged, "
        f"{in_words(found[name].run)} of results, {in_words(found[name].product)} of product"
        for name in by_size[:_LISTED]
    ]
    more = f"; and {len(found) - _LISTED} others" if len(found) > _LISTED else ""
    return (
        f"workloads: they need {in_words(needed)} of disk in {study.folder.absolute()}, which has "
        f"room for {in_words(place.disk)}: {'; '.join(parts)}{more}; make them smaller, or "
        "name a folder on another disk (--out PATH)"
    )


def _files_bytes(one: WorkloadSizes) -> int:
    return one.staged + 2 * one.coordinates + one.product + one.run


def _disk_bytes(study: Study, found: dict[str, WorkloadSizes]) -> int:
    """Return the bytes of staged files and products of all workloads, and of results of runs.

    Results go once they are delivered, unless the study keeps them, and the jobs after which they
    go come first: so the largest ones are there beside all that stays.
    """
    runs = [one.run for one in found.values()]
    stay = sum(_files_bytes(one) - one.run for one in found.values())
    scratch = [_scratch_bytes(study, name, one) for name, one in found.items()]
    return stay + (sum(runs) if study.keep_runs else max(runs)) + max(scratch)


def _scratch_bytes(study: Study, name: str, one: WorkloadSizes) -> int:
    """Return the bytes of a scratch file: operands of a file that do not fit into memory."""
    source = study.workloads[name].data_source
    beyond_memory = isinstance(source, FileInput) and 2 * one.staged > machine_memory()
    return one.staged if beyond_memory else 0


def _room(study: Study) -> int:
    """Return the results' disk's free bytes and those that earlier results of the study take."""
    folder = visible_above(study.folder.absolute())
    return shutil.disk_usage(folder).free + sum(map(_stored, _files(study)))


def _files(study: Study) -> Sequence[Path]:
    staged = [study.folder / "staged" / f"{name}.h5" for name in study.names]
    of_parts = [
        study.folder / kind / f"{part}.h5"
        for name in study.names
        for part in dict.fromkeys((name, *study.parts(name)))
        for kind in ("runs", "products")
    ]
    return [*staged, *of_parts]


def _stored(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
