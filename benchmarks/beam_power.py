"""Detected beams: ours, our product alone, a product then detection, and peers, in one run.

    python -m benchmarks.beam_power --csv beam-power.csv
    python -m benchmarks.beam_power --shape 1x1024x256x65536 --input fp16 --precisions fp16

A shape is channels x beams x antennas x samples. Times are those of whole calls on operands of the
device: ``argand`` is `argand.beam_power`, ``argand product`` is `argand.gemm` of the same operands,
with weights as pairs where samples are pairs of the precision, whose beams stay complex, and
``argand product, detected`` squares and sums them by NumPy or CuPy. Peers form complex64 beams and
detect them. At ``exact`` weights are int8 too, and the product is that of fp16, which is as exact.
Some bins of the first and the last channel are compared with fp64.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from argand import PRECISIONS, Pairs, beam_power, gemm, pairs, to_pairs
from argand.beam_power.problem import DETECTIONS, EXACT, beam_power_problem
from argand.runtime.ceilings import Ceilings, measure_ceilings

from benchmarks.harness.conditions import RealRates
from benchmarks.harness.measuring import array_module
from benchmarks.harness.samples import on_host
from benchmarks.harness.tables import Table, parser
from benchmarks.harness.whole_calls import Clock, WholeCall, add_arguments
from benchmarks.peers import study_peers
from benchmarks.peers._beam_power import detected as detect_beams
from workflow.accuracy.beam_power_bounds import allowed, detected

Input = Literal["complex64", "int8", "fp16", "bf16"]
INPUTS: tuple[Input, ...] = ("complex64", "int8", "fp16", "bf16")
CASES: tuple[tuple[tuple[int, int, int, int], Input, tuple[str, ...]], ...] = (
    ((256, 64, 64, 4096), "int8", ("fp16", "exact")),
    ((256, 64, 64, 4096), "complex64", ("tf32", "3xtf32", "3xfp16", "fp16", "bf16")),
    ((1, 1024, 256, 65536), "fp16", ("fp16",)),
    ((1, 1024, 256, 65536), "complex64", ("3xtf32", "bf16")),
    ((1, 1024, 256, 65536), "int8", ("fp16", "exact")),
)
"""Shapes, inputs and precisions of a run without arguments."""
SAMPLED_BINS = 64
"""Checked bins: the first ones of the first channel and the last ones of the last."""
_PRODUCT, _APART = "argand product", "argand product, detected"


@dataclass(frozen=True, kw_only=True)
class BeamPowerRow(WholeCall):
    """One way to detect the beams of one set of operands.

    Attributes:
        channels, beams, antennas, samples, integrate, detect: the problem.
        implementation: see the module.
        input: type of the samples; weights are complex64.
        gflops: 8 channels beams antennas samples over the median time, in 1e9 a second.
        of_floor: the larger of bytes (operands read, sums written) at the measured copy rate and
            operations at the measured rate of the operand's real product, over the median time.
        over_product, over_apart: the times of both ways by our product over this one's.
        error: largest error of sampled powers over what is allowed; 0 of the product alone.
        verified: whether it is at most 1.
    """

    channels: int
    beams: int
    antennas: int
    samples: int
    integrate: int
    detect: str
    implementation: str
    precision: str
    input: str
    gflops: float
    of_floor: float
    over_product: float | None
    over_apart: float | None
    error: float
    verified: bool


@dataclass(frozen=True)
class _Run:
    """The operands, the device and the clock of the measurements that form one group of rows."""

    arguments: argparse.Namespace
    clock: Clock
    ceilings: Ceilings
    rates: RealRates
    shape: tuple[int, int, int, int]
    input: Input
    weights: Any
    samples: Any

    @property
    def options(self) -> dict[str, Any]:
        return {"detect": self.arguments.detect, "integrate": self.arguments.integrate}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; the exit status is 1 where a power of ours was not accurate."""
    arguments = _parser().parse_args(argv)
    table, clock = Table(arguments.csv), Clock(arguments, "beam_power")
    device = clock.device
    rates = RealRates(device)
    ceilings = (
        Ceilings.from_json(Path(arguments.ceilings).read_text())
        if arguments.ceilings
        else measure_ceilings(device)
    )
    for shape, kind, precisions in _cases(arguments):
        weights, samples = _operands(shape, kind, arguments, array_module(device))
        run = _Run(arguments, clock, ceilings, rates, shape, kind, weights, samples)
        for row in _rows(run, precisions):
            table.add([row], _line(row))
    return table.status("verified", "argand")


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("--shape", help="channels x beams x antennas x samples")
    found.add_argument("--input", choices=INPUTS, default="complex64")
    found.add_argument(
        "--precisions", nargs="+", choices=[*PRECISIONS, EXACT.name], default=["fp16"]
    )
    found.add_argument("--integrate", type=int, default=16)
    found.add_argument("--detect", choices=DETECTIONS, default="power")
    found.add_argument("--ceilings", help="a file of measured ceilings; measured where not given")
    add_arguments(found, seconds=1.0, rest=0.2)
    return found


def _cases(
    arguments: argparse.Namespace,
) -> Sequence[tuple[tuple[int, int, int, int], Input, Sequence[str]]]:
    if arguments.shape is None:
        return CASES
    channels, beams, antennas, samples = map(int, arguments.shape.split("x"))
    return [((channels, beams, antennas, samples), arguments.input, arguments.precisions)]


def _operands(
    shape: tuple[int, int, int, int], kind: Input, arguments: argparse.Namespace, arrays: Any
) -> tuple[Any, Any]:
    """Return weights and samples, a wave on noise; two polarizations for Stokes parameters."""
    channels, beams, antennas, samples = shape
    outer = (channels, 2) if arguments.detect == "stokes" else (channels,)
    rng = arrays.random.default_rng(arguments.seed)
    w = rng.standard_normal((*outer, beams, antennas, 2), dtype=np.float32)
    x = rng.standard_normal((*outer, antennas, samples, 2), dtype=np.float32)
    x += rng.standard_normal((*outer, 1, samples, 2), dtype=np.float32)
    w = w.view(np.complex64)[..., 0]
    if kind == "int8":
        x *= 20
        return w, pairs(arrays.clip(arrays.rint(x), -128, 127).astype(np.int8))
    x = x.view(np.complex64)[..., 0]
    return w, x if kind == "complex64" else to_pairs(x, kind)


def _rows(run: _Run, precisions: Sequence[str]) -> Iterator[BeamPowerRow]:
    arrays = array_module(run.clock.device)
    given = run
    for precision in precisions:
        run, own, multiplied = given, given.weights, precision
        held = precision == run.input  # weights of complex64 would be converted in the product
        weights = to_pairs(run.weights, run.input) if held else run.weights
        if precision == EXACT.name:
            integers = arrays.clip(arrays.rint(40 * own.view(np.float32)), -128, 127)
            own = weights = pairs(integers.astype(np.int8).reshape(*own.shape, 2))
            run, multiplied = replace(run, weights=weights.to_complex64()), "fp16"
        product = partial(gemm, weights, run.samples, precision=multiplied)
        alone = _row(run, _PRODUCT, precision, product)
        yield alone

        def apart(product: Callable[[], Any] = product) -> Any:
            return detect_beams(arrays, product(), **given.options)

        both = _row(run, _APART, precision, apart)
        yield both
        ours = partial(beam_power, own, run.samples, precision=precision, **run.options)
        yield _row(run, "argand", precision, ours, alone.time_us_p50, both.time_us_p50)
    run = given
    if not run.arguments.no_peer:
        x = run.samples.to_complex64() if isinstance(run.samples, Pairs) else run.samples
        for peer in study_peers("beam_power", run.clock.device.backend):
            call = partial(peer.computation("fp32"), run.weights, x, **run.options)
            yield _row(run, peer.name, "fp32", call)


def _row(
    run: _Run, name: str, precision: str, call: Callable[[], Any],
    product_us: float | None = None, apart_us: float | None = None,
) -> BeamPowerRow:  # fmt: skip
    error = 0.0 if name == _PRODUCT else _error(run, precision, call())
    call()
    columns = run.clock.timed(call, ours=name == "argand")
    time_us, (channels, beams, antennas, samples) = columns["time_us_p50"], run.shape
    polarizations = 2 if run.arguments.detect == "stokes" else 1
    flops = 8.0 * channels * polarizations * beams * antennas * samples
    held = run.samples.array if isinstance(run.samples, Pairs) else run.samples
    outputs = 4 if polarizations == 2 else 1
    written = 4 * channels * outputs * beams * (samples // run.arguments.integrate)
    moved = held.nbytes + run.weights.nbytes + written
    if precision == EXACT.name:
        rate = run.rates.tflops("int8", run.arguments.seconds) or run.ceilings.tflops["fp32"]
        floor_s = max(moved / (1e9 * run.ceilings.copy_gbytes_per_s), flops / (1e12 * rate))
    else:
        floor_s = run.ceilings.limit_time_s(flops, moved, PRECISIONS[precision])
    return BeamPowerRow(
        channels=channels, beams=beams, antennas=antennas, samples=samples,
        integrate=run.arguments.integrate, detect=run.arguments.detect, implementation=name,
        precision=precision, input=run.input, gflops=1e-3 * flops / time_us,
        of_floor=1e6 * floor_s / time_us,
        over_product=product_us and product_us / time_us,
        over_apart=apart_us and apart_us / time_us, error=error, verified=error <= 1, **columns,
    )  # fmt: skip


def _error(run: _Run, precision: str, found: Any) -> float:
    """Return the largest error of sampled bins over what they may be off by."""
    n, worst = run.arguments.integrate, 0.0
    row = EXACT if precision == EXACT.name else PRECISIONS[precision]
    bins = found.shape[-1]
    last = max(0, bins - SAMPLED_BINS)
    for channel, first in ((0, 0), (run.shape[0] - 1, last)):
        some = slice(first, min(first + SAMPLED_BINS, bins))
        times = slice(some.start * n, some.stop * n)
        x = run.samples
        x = (
            Pairs(x.array[channel][..., times, :], x.format)
            if isinstance(x, Pairs)
            else (x[channel][..., times])
        )
        x = on_host(x.to_complex64() if isinstance(x, Pairs) else x)
        w = on_host(run.weights[channel])
        problem = beam_power_problem(w.shape, x.shape, precision=row, **run.options)
        exact = detected(problem, w, x)
        held = detected(problem, w, x, row)
        bound = allowed(problem, exact, held, row, run.clock.device.backend)
        off = np.abs(on_host(found[channel][..., some]) - exact.power.reshape(problem.shape))
        ratio = float((off / bound.reshape(problem.shape)).max(initial=0))
        worst = max(worst, np.inf if np.isnan(ratio) else ratio)
    return worst


def _line(row: BeamPowerRow) -> str:
    faster = (
        ""
        if row.over_product is None
        else (f" x {row.over_product:.2f} of the product, x {row.over_apart:.2f} of both")
    )
    verdict = "" if row.verified else "  NOT ACCURATE"
    return (
        f"{row.channels:4} x {row.beams} x {row.antennas} x {row.samples} / {row.integrate} "
        f"{row.input:9} {row.implementation:24} {row.precision:7} {row.time_us_p50:10.1f} us "
        f"{100 * row.of_floor:5.1f} % of the floor{faster}  error {row.error:.2f}{verdict}"
    )


if __name__ == "__main__":
    sys.exit(main())
