"""Estimates of a step's memory and time, from the sizes of a workload alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from argand import Precision, get_precision
from argand.precision import FP16, INT8, any_precision

from workflow.accuracy.references import FLOP_BUDGET
from workflow.config.case import Case
from workflow.config.file_input import FileInput
from workflow.cpu_models import is_model
from workflow.data import MAX_DRAWN_BYTES
from workflow.implementation import OtherWork
from workflow.measuring.timing import SECONDS
from workflow.steps.pieces import pieces_of, sizes
from workflow.steps.streaming import HOST_BYTES, exceeds
from workflow.study import Study, outlined
from workflow.workloads.base import Workload

Step = Literal["stage", "run", "verify", "deliver", "gather", "draw"]

_COPIES: dict[Step, float] = {
    "stage": 2,
    "verify": 2,
    "deliver": 2.5,
    "gather": 1,
    "draw": 2.5,
}
"""Peak memory of a step over the volume of the workload, rounded up from what was seen with
volumes of 200 to 350 MB of every kind: stage 1, verify 1.6 by one thread, deliver 1.6, draw 1.8."""
_RUN_ROOM = 1.5
"""Memory that is asked for a run over `Workload.run_copies`, which models of transforms of 17 MB
exceed by a third."""
_COPIES_OF_A_THREAD, _MAX_COPIES_OF_THREADS = 0.4, 6.0
"""Copies that each thread of a verification adds, and all together at most, seen with up to 16
threads: at most 0.3, where rows of 2^20 make large blocks; together they have no more than there
are blocks."""
OF_A_PART: tuple[Step, ...] = ("run", "verify", "deliver")
"""Steps that each shard of a workload has for itself."""
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
_CALLS = 6
"""Calls of each implementation: first, warm-up, timed, and once for its result."""
_PEERS = {"cpu": ("fp64", "fp32"), "cuda": ("fp64",) * 4}
"""Most precisions of peers."""
_CONVERTED = (FP16, INT8)
"""Formats that NumPy converts to and from more slowly than it multiplies."""


@dataclass(frozen=True)
class _Sizes:
    """Sizes of a workload or of a part of it, as fp64 has them: bytes, operations, seconds.

    Attributes:
        kind: whose reference and splits count.
        volume: bytes of operands and result (`Sizes.volume`).
        result: bytes of one result.
        piece: bytes of a piece (`workflow.steps.pieces`), for a part as for the whole.
        copies: `Workload.run_copies`.
        flops, moved: operations of a call, and bytes that it reads and writes.
        ours, theirs: seconds that a call of ours or of a peer's takes beside products, on a CPU.
    """

    kind: type[Workload]
    volume: float
    result: float
    piece: float
    copies: float
    flops: float
    moved: float
    ours: float
    theirs: float

    def part(self, count: int) -> _Sizes:
        """Return the sizes of one of ``count`` shards."""
        names = ("volume", "result", "flops", "moved", "ours", "theirs")
        return replace(self, **{name: getattr(self, name) / count for name in names})


def estimate(
    study: Study, name: str, step: Step, *, gpu: bool = False, threads: int = 1
) -> tuple[float, float]:
    """Return bytes of memory that a step's data take, and seconds of its work at the slowest rates.

    Neither includes what every job takes, nor room to spare. The arguments are those of `needs`.
    """
    case = study.workloads[name]
    size = _sizes(study.chain(name)).part(len(study.parts(name)) if step in OF_A_PART else 1)
    held, handled = _held_and_handled(size, step, isinstance(case.data_source, FileInput))
    copies = _RUN_ROOM * size.copies if step == "run" else _COPIES[step]
    memory, seconds = copies * held, handled / _FILE_RATE
    if step == "run":
        memory = HOST_BYTES if _is_streamed(study, name) else memory
        seconds += _run_seconds(size, case, gpu=gpu)
    elif step == "verify":
        memory = _verify_copies(size, threads) * held
        seconds += _verify_seconds(size, case)
    return float(memory), seconds


def _held_and_handled(size: _Sizes, step: Step, from_file: bool) -> tuple[float, float]:
    """Return the bytes that a step has in memory at a time, and those that it reads and writes."""
    volume, piece = size.volume, min(size.volume, size.piece)
    if step == "stage":  # a file alone is read whole
        return volume if from_file else 0.0, volume - size.result
    if step == "verify":
        return piece, volume
    if step == "deliver":  # operands of kinds without splits may describe the result
        return piece, size.result if size.kind.splits else volume
    if step == "draw":
        volume = min(volume, 2 * MAX_DRAWN_BYTES)
    return volume, volume


def _run_seconds(size: _Sizes, case: Case, *, gpu: bool) -> float:
    """Return the seconds of all calls of a run, and of writing their results."""
    backend: Literal["cpu", "cuda"] = "cuda" if gpu else "cpu"
    own, peers = _implementations(case, backend)
    seconds = 0.0
    for row, more in [*((row, size.ours) for row in own), *((row, size.theirs) for row in peers)]:
        call = call_seconds(size.flops, size.moved, row, gpu=gpu) + (0.0 if gpu else more)
        # Short calls are repeated until their times have settled.
        short = 0.0 if is_model(row.name, backend) else SECONDS
        share = 1.0 if row.output == "complex128" else 0.5
        seconds += max(_CALLS * call, short) + share * size.result / _FILE_RATE
    return seconds


def _verify_copies(size: _Sizes, threads: int) -> float:
    """Return the copies of a piece: a process has each, with threads where pieces are fewer."""
    processes = max(1, min(threads, math.ceil(size.volume / max(size.piece, 1))))
    copies = _COPIES["verify"] + size.kind.reference_copies
    copies += min(_COPIES_OF_A_THREAD * threads / processes, _MAX_COPIES_OF_THREADS)
    return copies * processes


def _verify_seconds(size: _Sizes, case: Case) -> float:
    """Return the seconds of the reference, and of reading all results."""
    # They may have been computed on a GPU, where there are more peers.
    own, peers = _implementations(case, "cuda")
    work = min(size.flops, FLOP_BUDGET * max(1, size.volume / size.piece))
    if size.kind.reference_flops is not None:
        work = size.kind.reference_flops * size.flops
    results = (len(own) + len(peers)) * size.result
    other = size.ours if size.kind.reference_repeats else 0.0
    return work / _RATES["cpu"][0] + other + results / _FILE_RATE


def _implementations(
    case: Case, backend: Literal["cpu", "cuda"]
) -> tuple[list[Precision], list[Precision]]:
    """Return the precisions of a run: of ours, and of as many peers as there may be."""
    peers = () if case.baselines == "none" else _PEERS[backend]
    own, others = ([any_precision(name) for name in x] for x in (case.precisions or (), peers))
    return own, others


def call_seconds(flops: float, moved: float, row: Precision, *, gpu: bool) -> float:
    """Return the seconds of a call with ``flops`` and ``moved`` bytes in fp64 at a precision.

    On a CPU operands are read or rounded in as much time as a product takes, and a model has
    further products. Calls of the default study took at most as long (docs/data/cpu-study.csv),
    models of transforms up to four times.
    """
    flop_rate, byte_rate = _RATES["cuda" if gpu else "cpu"]
    slowest = flops / flop_rate + moved / byte_rate
    return slowest if gpu else slowest * _steps(row) / _steps(get_precision("3xfp16"))


def other_seconds(work: OtherWork, *, peer: bool) -> float:
    """Return seconds that a call of ours, or a peer's, on a CPU takes beside its products."""
    seconds = _EXPONENTIAL_SECONDS * work.exponentials
    return seconds + (work.peer_bytes / _PASS_RATE if peer else _TERM_SECONDS * work.terms)


def _steps(row: Precision) -> int:
    """Return the products of a precision on a CPU, and one to read or round its operands."""
    products = 2 * row.moduli if row.moduli else len(row.products)
    return (1 + products) * (2 if row.operand in _CONVERTED else 1)


def _is_streamed(study: Study, name: str) -> bool:
    """Return whether the study has all of a workload's results stream through the device."""
    allowed = study.workloads[name].device_memory_bytes()
    if allowed is None:
        return False
    workload, outline = outlined(study.chain(name))
    return exceeds(workload, outline, get_precision("fp32"), allowed * len(study.parts(name)))


@cache
def _sizes(chain: tuple[str, ...]) -> _Sizes:
    """Return the sizes of the whole workload.

    They are kept by what `Study.chain` says, so that files are opened, and circuits built, once.
    """
    workload, staged = outlined(chain)
    shape, work = workload.shape(staged, get_precision("fp64")), workload.other_work(staged)
    found, piece = sizes(workload, staged), pieces_of(workload, staged).bytes
    return _Sizes(
        kind=type(workload), volume=float(found.volume), result=float(found.result),
        piece=float(piece), copies=workload.run_copies(staged), flops=shape.flops,
        moved=shape.bytes_moved, ours=other_seconds(work, peer=False),
        theirs=other_seconds(work, peer=True),
    )  # fmt: skip
