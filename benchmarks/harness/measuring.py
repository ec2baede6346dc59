"""The common parts of benchmarks beside peers: their arguments, and a candidate's way to a row."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Precision, launched
from argand.device import resolve
from argand.runtime.compile.kernel_digest import kernel_digest
from argand.runtime.measuring.ceilings import Ceilings

from benchmarks.harness.conditions import Monitor, RealRates, monitor
from benchmarks.peers import Candidate, CannotRunError
from workflow.accuracy.assessment import Accuracy
from workflow.measuring.timing import Limits, Timing, measure, rotations, with_allocations
from workflow.records import NOT_RUN, BenchmarkRecord
from workflow.versions import timestamp, versions


@dataclass(frozen=True)
class Work:
    """The case that all candidates solve: its columns of a Record and its nominal cost."""

    sizes: dict[str, Any]
    flops: float
    bytes_moved: float
    operation: str

    @property
    def name(self) -> str:
        """The case in one word."""
        shown = [f"{key}{value}" for key, value in self.sizes.items()]
        return f"{self.operation}-" + "-".join(shown)


def parser(description: str | None, peers: Sequence[str]) -> argparse.ArgumentParser:
    """Return the arguments that all benchmarks beside peers have."""
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument(
        "--precisions", type=_names(list(PRECISIONS), "precisions"), default=list(PRECISIONS),
        help=f"of {', '.join(PRECISIONS)}, separated by commas",
    )  # fmt: skip
    found.add_argument(
        "--peers", type=_names([*peers, "auto", "none"], "peers"), default=["auto"],
        help=f"of {', '.join(peers)}; auto takes what is installed, none takes none",
    )  # fmt: skip
    found.add_argument(
        "--peer-precisions", type=_names(list(PRECISIONS), "peer precisions"),
        default=list(PRECISIONS), help="the same of peers, separated by commas",
    )  # fmt: skip
    found.add_argument("--repeats", type=int, default=20, help="calls to time")
    found.add_argument("--seconds", type=float, default=0.5, help="or until this much is spent")
    found.add_argument(
        "--sustain", type=float, default=0.0,
        help="seconds of the same calls before the clock starts: a card that throttles has done so",
    )  # fmt: skip
    found.add_argument(
        "--rest", type=float, default=0.5,
        help="seconds of rest before each candidate on a GPU: all start from the same clock",
    )  # fmt: skip
    found.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--csv", type=Path, help="where the records go")
    return found


def _names(allowed: list[str], what: str) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{what} must be of {allowed}, got {name!r}")
        return names

    return read


def chosen_device(name: str) -> Device:
    """Return the device of ``--device``."""
    return resolve(name)


def array_module(device: Device) -> Any:
    """Return NumPy or CuPy, whose arrays live on the device."""
    if device.backend == "cpu":
        return np
    import cupy

    return cupy


def chosen(available: Sequence[Candidate], arguments: argparse.Namespace) -> list[Candidate]:
    """Return the peers that were asked for. Raises ValueError for one that cannot run here."""
    named, precisions = arguments.peers, arguments.peer_precisions
    if "none" in named:
        return []
    names = {peer.name for peer in available}
    for name in named:
        if name not in names | {"auto"}:
            raise ValueError(f"peers must be of {sorted(names)} on this machine, got {name!r}")
    asked = names if "auto" in named else named
    return [peer for peer in available if peer.name in asked and peer.precision.name in precisions]


@dataclass
class Bench:
    """A place to measure candidates: the device, its limits, and what watches it."""

    device: Device
    ceilings: Ceilings
    repeats: int
    seconds: float
    sustain: float
    rest: float

    def __post_init__(self) -> None:
        self.monitor: Monitor = monitor(self.device)
        self.real: RealRates = RealRates(self.device)

    @classmethod
    def of(cls, device: Device, ceilings: Ceilings, arguments: argparse.Namespace) -> Bench:
        """Return a bench with the settings of `parser`."""
        found = cls(
            device, ceilings, arguments.repeats, arguments.seconds, arguments.sustain,
            arguments.rest if device.backend == "cuda" else 0.0,
        )  # fmt: skip
        print(f"{device}; " + "; ".join(found.monitor.notes))
        return found

    def run(
        self,
        candidate: Candidate,
        work: Work,
        operands: Sequence[Any],
        assess: Callable[[Any, Candidate], Accuracy],
        *,
        sampled: Callable[[Any], Any] | None = None,
    ) -> BenchmarkRecord:
        """Compute, check and time one candidate; a row with the reason where that cannot be done.

        ``sampled`` takes from a product what ``assess`` reads. Then the real product of the
        operand type is measured right after the clock stopped, while the host assesses.
        """
        try:
            return self._measured(candidate, work, operands, assess, sampled)
        except CannotRunError as error:
            return _row(candidate, work, self.device, reason=f"{NOT_RUN}{error}")
        # One that breaks must not take the rows of the others with it.
        except Exception as error:
            reason = f"failed: {type(error).__name__}: {error}"
            return _row(candidate, work, self.device, reason=reason)
        finally:
            release(self.device)

    def _measured(
        self, candidate: Candidate, work: Work, operands: Sequence[Any],
        assess: Callable[[Any, Candidate], Accuracy], sampled: Callable[[Any], Any] | None,
    ) -> BenchmarkRecord:  # fmt: skip
        inputs = candidate.prepare(*operands)
        found, allocated = with_allocations(partial(candidate.compute, *inputs), self.device)
        if sampled is None:
            assessed = partial(_itself, assess(candidate.result(found), candidate))
        else:
            assessed = partial(assess, sampled(candidate.result(found)), candidate)
        del found
        copies = rotations(self.device, sum(x.nbytes for x in operands), allocated)
        every = [inputs, *(candidate.prepare(*operands) for _ in range(copies - 1))]
        calls = [lambda mine=mine: candidate.compute(*mine) for mine in every]
        time.sleep(self.rest)
        started = time.perf_counter()
        with self.monitor.watching() as samples:
            timing = measure(
                calls,
                self.device,
                Limits(repeats=self.repeats, seconds=self.seconds, sustain=self.sustain),
                held=True,
            )
        spent = time.perf_counter() - started
        with ThreadPoolExecutor(1) as host:
            accuracy = host.submit(assessed)
            name = candidate.precision.operand.name
            real = None if sampled is None else self.real.tflops(name, spent)
        return _row(
            candidate, work, self.device, chosen=candidate.chosen(*inputs), real_tflops=real,
            **_rates(work, candidate.precision, timing, self.ceilings, real),
            **asdict(timing), **asdict(accuracy.result()), **asdict(samples.conditions),
        )  # fmt: skip


def kernels_of(compute: Callable[..., Any]) -> Callable[..., str]:
    """Return a function that names the kernels of a call of these operands, made again."""

    def chosen(*operands: Any) -> str:
        with launched() as names:
            compute(*operands)
        return "; ".join(names)

    return chosen


def _itself(found: Accuracy) -> Accuracy:
    return found


def _rates(
    work: Work, precision: Precision, timing: Timing, ceilings: Ceilings, real: float | None
) -> dict[str, float | None]:
    seconds = 1e-6 * timing.time_us_p50
    tflops = work.flops / seconds / 1e12
    return {
        "tflops": tflops,
        "gbytes_per_s": work.bytes_moved / seconds / 1e9,
        "limit_fraction": ceilings.limit_time_s(work.flops, work.bytes_moved, precision) / seconds,
        "fraction_of_real": tflops * len(precision.products) / real if real else None,
    }


def _row(
    candidate: Candidate, work: Work, device: Device, chosen: str = "", **found: Any
) -> BenchmarkRecord:
    digest = kernel_digest(work.operation) if candidate.name == "argand" else ""
    return BenchmarkRecord(
        workload=work.name, kind=work.operation, implementation=candidate.name,
        precision=candidate.precision.name,
        algorithm=", ".join(part for part in (candidate.algorithm, chosen) if part),
        device=device.name, backend=device.backend, kernel_digest=digest, versions=versions(),
        timestamp=timestamp(),
        input=candidate.input, output=candidate.output, predicted_us=candidate.predicted_us,
        **work.sizes, **found,
    )  # fmt: skip


def release(device: Device) -> None:
    """Give back what the pools of CuPy and PyTorch hold: neither sees the other's."""
    if device.backend == "cuda":
        import cupy

        cupy.get_default_memory_pool().free_all_blocks()
        if torch := sys.modules.get("torch"):
            torch.cuda.empty_cache()
