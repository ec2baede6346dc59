"""Requests of a workload's jobs to a cluster's scheduler: memory and run time.

Both follow from the workload's sizes, with room to spare: a job that asks for too much waits a
little longer, one that asks for too little is killed. A further attempt asks for more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workflow.preflight.estimates import Step, estimate
from workflow.shards import split_part
from workflow.study import Study

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
"""Factor of run times: nodes are slower than the machines of the estimates, and shared."""

MAX_URGENT = 9
"""Largest `urgency`: below the steps whose end frees the disk."""


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
        threads: threads of the verify step, which hold blocks beside its data.
    """
    memory, seconds = estimate(study, name, step, gpu=gpu, threads=threads)
    cuda = _CUDA_MB if gpu and step == "run" else 0
    return Needs(int(_BASE_MB + cuda + memory / 1e6), _BASE_MINUTES + int(_MARGIN * seconds / 60))


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
    """Return the cores that a timed job asks for on a machine with ``cores``.

    Timings on the CPU have the machine to themselves. Those on GPUs, each with its device to
    itself, share a quarter of the cores and leave the rest to the verification of what has been
    computed.
    """
    return max(1, cores // 4 // gpus) if gpus else cores


def urgency(study: Study, name: str, *, gpu: bool = False) -> int:
    """Return Snakemake's priority of a workload, from 3 to `MAX_URGENT`.

    The longer its run, and those of the workloads that read its product, the sooner, so that no
    long one is left when all others are done.
    """
    readers = [other for other in study.names if name in study.upstream(other)]
    runs = [needs(study, each, "run", gpu=gpu).minutes for each in (name, *readers)]
    return min(MAX_URGENT, sum(runs).bit_length() - 1)
