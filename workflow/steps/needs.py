"""Requests of a workload's jobs to a cluster's scheduler: memory and run time.

Both follow from the workload's sizes, with room to spare: a job that asks for too much waits a
little longer, one that asks for too little is killed. A further attempt asks for more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from argand import Precision, get_precision
from argand.precision import FP16, INT8, any_precision

from workflow.accuracy.references import FLOP_BUDGET
from workflow.config.case import Case
from workflow.config.file_input import FileInput
from workflow.data import MOST_DRAWN_BYTES, Made, Shape
from workflow.models import is_model
from workflow.shards import split_part
from workflow.steps.pieces import pieces_of, sizes
from workflow.steps.streaming import HOST_BYTES, exceeds
from workflow.study import Study, outlined
from workflow.timing import SECONDS
from workflow.workloads import KINDS

Step = Literal["stage", "run", "verify", "deliver", "gather", "draw"]

_BASE_MB = 2000
"""A job's libraries (at most 262 MiB before its data, by `benchmarks.pipeline.job_memory`), the two
Snakemakes around it (224 MiB each), and the copies of small inputs that a timing rotates through
the cache (twice a last-level cache, of 300 MiB on large machines), rounded up."""
_CUDA_MB = 1000
"""More where CUDA is used: jobs with all peers and kernels compiled on an H200 took 500 to 577 MiB
before their data, those that import PyTorch 798 (docs/data/h200-job-memory.json), at most 600 more
than on a CPU; drivers differ."""
_BASE_MINUTES = 10
"""Minutes for start-up, compilation of kernels, and a file system under load."""
_MARGIN = 3.0
"""Factor of run times: nodes are slower than the machines of the rates below, and shared."""

_COPIES: dict[Step, float] = {
    "stage": 2,
    "run": 3,
    "verify": 2,
    "deliver": 2.5,
    "gather": 1,
    "draw": 2.5,
}
"""Peak memory of a step over the volume of the workload, rounded up from what was seen with volumes
of 200 to 350 MB of every kind: at most 1, 2.1, 1.6 by one thread, 1.6 and 1.8."""
_COPIES_OF_A_THREAD, _MOST_OF_THREADS = 0.4, 6.0
"""Copies that each thread of a verification adds, and all together at most, seen with up to 16
threads: at most 0.3, where rows of 2^20 make large blocks; together they have no more than there
are blocks."""
OF_A_PART: tuple[Step, ...] = ("run", "verify", "deliver")
"""Steps that each shard of a workload has for itself."""
_IN_PIECES: tuple[Step, ...] = ("verify", "deliver")
"""Steps that hold a piece of a workload at a time (`workflow.steps.pieces`)."""
_FILE_RATE = 1e8
"""Bytes a second that a step reads, checks or draws and writes."""
_RATES = {"cpu": (2e10, 5e8), "cuda": (1e12, 1e9)}
"""Operations and bytes a second: of 3xfp16 on two cores, and of the slowest precision on a GPU with
the way of the data to it."""
_EXPONENTIAL_SECONDS = 2.8e-8
"""Seconds of a complex exponential on one core, by NumPy in fp64 (22 to 24 ns on an Emerald
Rapids), and with the roundings of a model of two terms (28 ns; others 6 to 12)."""
_TERM_SECONDS = 2e-9
"""Seconds of a product that NumPy adds to a sum on one core, read from a cache: 65 images of 3
channels, 5 antennas and 256 directions in complex128 took longer than the estimate of their
products and weights, by 1.8 and 2.0 ns a term of R w times w."""
_PASS_RATE = 2e9
"""Bytes a second of NumPy's steps over arrays that are too large for a cache and for memory that is
kept: of 134 MB each 2.2e9."""
MOST_URGENT = 9
"""Largest `urgency`: below the steps whose end frees the disk."""
_CALLS = 6
"""Calls of each implementation: first, warm-up, timed, and once for its result."""
_PEERS = {"cpu": ("fp64", "fp32"), "cuda": ("fp64",) * 4}
"""Most precisions of peers."""
_CONVERTED = (FP16, INT8)
"""Formats that NumPy converts to and from more slowly than it multiplies."""


@dataclass(frozen=True)
class Needs:
    """Memory in MB (as Snakemake's ``mem_mb``) and run time in minutes (``runtime``)."""

    memory_mb: int
    minutes: int

    def again(self, attempt: int) -> Needs:
        """Return the request of the n-th attempt: n times as much."""
        return Needs(self.memory_mb * attempt, self.minutes * attempt)


FIXED = Needs(2 * _BASE_MB + _CUDA_MB, 30)
"""Needs of the job that no workload sizes: growth of errors (80 MiB)."""


def needs(study: Study, name: str, step: Step, *, gpu: bool = False, threads: int = 1) -> Needs:
    """Return the needs of one step of a workload.

    Args:
        study: where the workload is; its input files are opened for their headers.
        name: the workload's.
        step: which.
        gpu: whether the run step computes on a GPU.
        threads: of the verify step, which hold blocks beside its data.
    """
    memory, seconds = estimate(study, name, step, gpu=gpu, threads=threads)
    cuda = _CUDA_MB if gpu and step == "run" else 0
    return Needs(int(_BASE_MB + cuda + memory / 1e6), _BASE_MINUTES + int(_MARGIN * seconds / 60))


def estimate(
    study: Study, name: str, step: Step, *, gpu: bool = False, threads: int = 1
) -> tuple[float, float]:
    """Return bytes of memory that a step's data take, and seconds of its work at the slowest rates.

    Without what every job takes, and without room to spare; arguments as of `needs`.
    """
    shape, made, volume, result, piece = _sizes(study.chain(name))
    parts = len(study.parts(name)) if step in OF_A_PART else 1
    volume, result, flops, moved = (
        x / parts for x in (volume, result, shape.flops, shape.bytes_moved)
    )
    ours, theirs = (making_seconds(made, peer=peer) / parts for peer in (False, True))
    held = min(volume, piece) if step in _IN_PIECES else volume
    if step == "stage" and not isinstance(study.workloads[name].data_source, FileInput):
        held = 0.0  # a file alone is read whole
    if step == "draw":
        volume = held = min(volume, 2 * MOST_DRAWN_BYTES)
    copies = _COPIES[step]
    kind = KINDS[study.workloads[name].kind]
    if step == "verify":  # by a process for each piece, with threads where pieces are fewer
        processes = max(1, min(threads, math.ceil(volume / max(piece, 1))))
        copies += min(_COPIES_OF_A_THREAD * threads / processes, _MOST_OF_THREADS)
        copies += kind.reference_copies
        copies *= processes
    taken = HOST_BYTES if step == "run" and _is_streamed(study, name) else copies * held
    # What a verification reads may have been computed on a GPU, where there are more peers.
    backend: Literal["cpu", "cuda"] = "cuda" if gpu or step == "verify" else "cpu"
    own, peers = _implementations(study.workloads[name], backend)
    rows = (*own, *peers)
    handled = volume
    if step == "stage":
        handled -= result
    elif step == "deliver" and kind.splits:  # operands of kinds without may describe the result
        handled = result
    seconds = handled / _FILE_RATE
    if step == "run":
        results = result * sum(1.0 if row.output == "complex128" else 0.5 for row in rows)
        seconds += results / _FILE_RATE
        for row, more in zip(rows, [ours] * len(own) + [theirs] * len(peers), strict=True):
            call = call_seconds(flops, moved, row, gpu=gpu) + (0.0 if gpu else more)
            # Short calls are repeated until their times have settled.
            short = 0.0 if is_model(row.name, backend) else SECONDS
            seconds += max(_CALLS * call, short)
    elif step == "verify":
        work = min(flops, FLOP_BUDGET * max(1, volume / piece))
        if kind.reference_flops is not None:
            work = kind.reference_flops * flops
        seconds += work / _RATES["cpu"][0] + ours + len(rows) * result / _FILE_RATE
    return float(taken), seconds


def _implementations(
    case: Case, backend: Literal["cpu", "cuda"]
) -> tuple[list[Precision], list[Precision]]:
    """Return the precisions of a run: of ours, and of as many peers as there may be."""
    peers = () if case.baselines == "none" else _PEERS[backend]
    own, others = ([any_precision(name) for name in x] for x in (case.precisions or (), peers))
    return own, others


def call_seconds(flops: float, moved: float, row: Precision, *, gpu: bool) -> float:
    """Return seconds of a call of so many operations and bytes in fp64 at a precision.

    On a CPU operands are read or rounded in as much time as a product takes, and a model has
    further products. Calls of the default study took at most as long (docs/data/cpu-study.csv),
    models of transforms up to four times.
    """
    flop_rate, byte_rate = _RATES["cuda" if gpu else "cpu"]
    slowest = flops / flop_rate + moved / byte_rate
    return slowest if gpu else slowest * _steps(row) / _steps(get_precision("3xfp16"))


def making_seconds(made: Made, *, peer: bool) -> float:
    """Return seconds that a call of ours, or a peer's, on a CPU takes beside its products."""
    seconds = _EXPONENTIAL_SECONDS * made.exponentials
    return seconds + (made.peer_bytes / _PASS_RATE if peer else _TERM_SECONDS * made.terms)


def _steps(row: Precision) -> int:
    """Return the products of a precision on a CPU, and one to read or round its operands."""
    products = 2 * row.moduli if row.moduli else len(row.products)
    return (1 + products) * (2 if row.operand in _CONVERTED else 1)


def asked(study: Study, step: Step | None = None, *, gpu: bool = False) -> dict[str, Any]:
    """Return a rule's resources ``mem_mb`` and ``runtime``, as functions of a job's attributes.

    A job's wildcard ``part`` or ``workload`` says of what it is; without ``step`` no workload sizes
    the rule's jobs.
    """

    def of(quantity: str) -> Callable[..., int]:
        def value(wildcards: Any, attempt: int, threads: int = 1) -> int:
            if step is None:
                found = FIXED
            else:
                part = getattr(wildcards, "part", None) or wildcards.workload
                found = needs(study, split_part(part)[0], step, gpu=gpu, threads=threads)
            return int(getattr(found.again(attempt), quantity))

        return value

    return {"mem_mb": of("memory_mb"), "runtime": of("minutes")}


def timing_threads(cores: int, gpus: int) -> int:
    """Return the cores that a timed job asks for on a machine of so many.

    Timings on the CPU have the machine to themselves. Those on GPUs, each with its device to
    itself, share a quarter of the cores and leave the rest to the verification of what has been
    computed.
    """
    return max(1, cores // 4 // gpus) if gpus else cores


def urgency(study: Study, name: str, *, gpu: bool = False) -> int:
    """Return Snakemake's priority of a workload, from 3 to `MOST_URGENT`.

    The longer its run, and those of the workloads that read its product, the sooner, so that no
    long one is left when all others are done.
    """
    readers = [other for other in study.names if name in study.upstream(other)]
    runs = [needs(study, each, "run", gpu=gpu).minutes for each in (name, *readers)]
    return min(MOST_URGENT, sum(runs).bit_length() - 1)


def _is_streamed(study: Study, name: str) -> bool:
    """Return whether the study has all of a workload's results stream through the device."""
    allowed = study.workloads[name].device_memory_bytes()
    if allowed is None:
        return False
    workload, outline = outlined(study.chain(name))
    return exceeds(workload, outline, get_precision("fp32"), allowed * len(study.parts(name)))


@cache
def _sizes(chain: tuple[str, ...]) -> tuple[Shape, Made, float, float, float]:
    """Return the shape, what is made beside it, and the volume, a result and a piece in fp64 bytes.

    By what `Study.chain` says, so that files are opened, and circuits built, once.
    """
    workload, staged = outlined(chain)
    shape, made = workload.shape(staged, get_precision("fp64")), workload.made(staged)
    found, piece = sizes(workload, staged), pieces_of(workload, staged).bytes
    return shape, made, float(found.volume), float(found.result), float(piece)
