"""Many small Hermitian systems: ours and the peer in one run.

    python -m benchmarks.solve_hermitian --csv hermitian.csv
    python -m benchmarks.solve_hermitian --n 8 64 --systems 20000 --columns 1 --input complex128

Times are those of whole calls of `argand.solve_hermitian` on operands of the device. On a GPU
several sets of operands, together larger than its last-level cache, are solved in turn. The peer is
NumPy's gesv on the CPU, and on a GPU PyTorch's cholesky and cholesky_solve. Residuals of sampled
systems are computed in fp64.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
from argand import Device, solve_hermitian
from argand.hermitian.bounds import residual_bound
from argand.runtime.complex_types import PRECISION, UNIT_ROUNDOFF

from benchmarks.harness.measuring import array_module, release
from benchmarks.harness.samples import on_host, sampled_rows
from benchmarks.harness.tables import Table, parser
from benchmarks.harness.whole_calls import Clock, WholeCall, add_arguments
from benchmarks.peers import study_peers

SAMPLED = 512
"""Systems whose residuals are computed."""
_MOST_SETS = 8
_COPIED = 1 << 28
"""Numbers of fp32 whose copy is the yardstick of memory."""
_Call = Callable[[Any, Any], Any]


@dataclass(frozen=True, kw_only=True)
class HermitianRow(WholeCall):
    """One way to solve systems of one size.

    Attributes:
        n, systems, columns: matrices are (systems, n, n), right-hand sides (systems, n, columns).
        input: type of the operands.
        gbytes_per_s: bytes of R, B and X, each once, over the median time.
        of_copy: that over the rate at which a copy reads and writes; None where it is not known.
        gflops: 4/3 n^3 + 8 n^2 columns for each system over the median time.
        speedup: the peer's median time of the same run over this one's.
        error: the largest residual over its bound (`argand.hermitian.bounds`).
        verified: whether it is at most 1.
    """

    n: int
    systems: int
    columns: int
    implementation: str
    precision: str
    input: str
    gbytes_per_s: float
    of_copy: float | None
    gflops: float
    speedup: float | None
    error: float
    verified: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; the exit status is 1 where a solution of ours was not accurate."""
    arguments = _parser().parse_args(argv)
    table, clock = Table(arguments.csv), Clock(arguments, "hermitian")
    device = clock.device
    copy = None if device.backend == "cpu" else clock.copy_rate(_COPIED)
    for n in arguments.n:
        sets = _systems(n, arguments, device)
        peer: float | None = None
        for name, call in _ways(arguments, device):
            row = _measured(name, call, sets, copy, peer, arguments.input, clock)
            if name != "argand" and row.verified:
                peer = row.time_us_p50 if peer is None else min(peer, row.time_us_p50)
            table.add([row], _line(row))
        del sets
        release(device)
    return table.status("verified", "argand")


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("--n", type=int, nargs="+", default=[8, 16, 32, 64])
    found.add_argument("--systems", type=int, default=100_000)
    found.add_argument("--columns", type=int, default=4, help="right-hand sides of each system")
    found.add_argument("--input", choices=list(UNIT_ROUNDOFF), default="complex64")
    add_arguments(found, seconds=1.0, rest=0.2)
    return found


def _ways(arguments: argparse.Namespace, device: Device) -> Iterator[tuple[str, _Call]]:
    if not arguments.no_peer:
        for peer in study_peers("hermitian", device.backend):
            yield peer.name, peer.computation(PRECISION[arguments.input])
    yield "argand", solve_hermitian


def _systems(n: int, arguments: argparse.Namespace, device: Device) -> list[tuple[Any, Any]]:
    """Sample covariances of n + 3 vectors and normal right-hand sides, in one set or several."""
    arrays, kind = array_module(device), np.dtype(arguments.input)
    rng = arrays.random.default_rng(arguments.seed)
    systems, columns = arguments.systems, arguments.columns
    each = systems * (n * n + 2 * n * columns) * kind.itemsize
    count = 1 if device.backend == "cpu" else min(_MOST_SETS, 1 + 2 * device.cache_bytes // each)

    def normal(*shape: int) -> Any:
        found = rng.standard_normal((*shape, 2), dtype=kind.type().real.dtype)
        return found.view(kind)[..., 0]

    sets = []
    for _ in range(count):
        v = normal(systems, n, n + 3)
        sets.append((v @ v.conj().swapaxes(-1, -2), normal(systems, n, columns).copy()))
    return sets


def _error(found: Any, r: Any, b: Any) -> float:
    """Return the largest residual of a sampled system over its bound."""
    rows = sampled_rows(len(r), SAMPLED)
    kind = str(found.dtype)
    found, r, b = (on_host(x[rows]).astype(complex) for x in (found, r, b))
    residual = np.linalg.norm(b - r @ found, axis=-2)
    return float((residual / residual_bound(r, b, found, kind)).max())


def _measured(
    name: str, call: _Call, sets: list[tuple[Any, Any]], copy: float | None, peer: float | None,
    dtype: str, clock: Clock,
) -> HermitianRow:  # fmt: skip
    r, b = sets[0]
    error = _error(call(r, b), r, b)
    turn = cycle(sets)
    columns = clock.timed(lambda: call(*next(turn)), ours=name == "argand")
    time_us, (systems, n, sides) = columns["time_us_p50"], b.shape
    rate = 1e6 * (r.nbytes + 2 * b.nbytes) / time_us
    return HermitianRow(
        n=n, systems=systems, columns=sides, implementation=name,
        precision=PRECISION[dtype], input=dtype, gbytes_per_s=rate / 1e9,
        of_copy=rate / copy if copy else None,
        gflops=systems * (4 / 3 * n**3 + 8.0 * n**2 * sides) / time_us / 1e3,
        speedup=peer / time_us if peer else None, error=error, verified=error <= 1, **columns,
    )  # fmt: skip


def _line(row: HermitianRow) -> str:
    faster = "" if row.speedup is None else f" x {row.speedup:.1f}"
    verdict = "" if row.verified else "  NOT ACCURATE"
    return (
        f"{row.systems} x ({row.n:3}, {row.columns}) {row.input:10} {row.implementation:7} "
        f"{row.time_us_p50:10.1f} us {row.gbytes_per_s:7.1f} GB/s "
        f"{100 * (row.of_copy or 0):5.1f} % of copy{faster}  error {row.error:.1e} of its "
        f"bound{verdict}"
    )


if __name__ == "__main__":
    sys.exit(main())
