"""Energy and time of exact products, of their kernels, and of what bounds them, in a row of calls.

    python -m benchmarks.exact_energy --csv docs/data/h200-exact-energy.csv
    python -m benchmarks.exact_energy --shape 4096x4096x4096 --precision 8xint8 --pieces

Power bounds a row of calls, so joules say what a change is worth. Each row repeats one thing
without a pause for ``--settle`` seconds, until the clock is the one that power allows, and then for
``--seconds``; energy is the slope of NVML's counter.

- call: the public function, in pieces of its choice and of ``--pieces`` products;
- encode B, encode A, product, decode: a call's kernels on its first piece, each alone;
- product of other residues: the same launch on planes of chosen values, which says how much of the
  energy depends on the bits of operands;
- copy: kernels that read and write and do nothing else, beyond L2 and within it;
- one thread: a kernel that waits, for what the card takes at its highest clock in any case.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from argand.gemm.modular.moduli import MODULAR_PRECISIONS

from benchmarks.gemm.shapes import Shape
from benchmarks.harness.energy import EnergyMeter
from benchmarks.harness.tables import Table, parser
from workflow.versions import timestamp, versions

Call = Callable[[], object]
_COPIED = {"beyond L2": 1 << 29, "within L2": 1 << 23}
"""Bytes of an array that is copied into another one, again and again."""
_COPIED_BYTES = 1 << 31
_COPY = """
extern "C" __global__ void copy(const uint4* x, uint4* y, unsigned int count, int times) {
    for (int i = 0; i < times; ++i)
        for (unsigned int at = blockIdx.x * blockDim.x + threadIdx.x; at < count;
             at += gridDim.x * blockDim.x)
            __stcg(y + at, __ldcg(x + at));
}
"""
_WAIT = """
extern "C" __global__ void wait(long long cycles) {
    const long long begin = clock64();
    while (clock64() - begin < cycles) {}
}
"""
_WAITED_CYCLES = 1 << 20


@dataclass(frozen=True)
class EnergyRow:
    """One thing in a row of itself.

    Attributes:
        shape, precision: of the call.
        what: that is repeated.
        operands: of it, in words.
        products: that one repetition computes.
        nbytes: that it reads and writes, each once.
        time_us, energy_mj: of a repetition.
        power_w: their ratio.
        clock_mhz: the median meanwhile.
    """

    shape: str
    precision: str
    what: str
    operands: str
    products: int
    nbytes: int
    time_us: float
    energy_mj: float
    power_w: float
    clock_mhz: float | None
    device: str
    versions: str
    timestamp: str


def copies(cupy: Any) -> Iterator[tuple[str, int, Call]]:
    """Yield copies of memory beyond and within L2, of about a millisecond, and their bytes."""
    kernel = cupy.RawKernel(_COPY, "copy")
    for name, nbytes in _COPIED.items():
        x, y = (cupy.zeros(nbytes // 4, "uint32") for _ in range(2))
        x[...] = cupy.random.default_rng(1).integers(0, 1 << 31, x.shape).astype("uint32")
        times = _COPIED_BYTES // nbytes
        arguments = (x, y, np.uint32(nbytes // 16), np.int32(times))
        yield name, 2 * _COPIED_BYTES, partial(kernel, (1056,), (256,), arguments)


def waiting(cupy: Any) -> Call:
    """Return a thread that waits for half a millisecond."""
    return partial(cupy.RawKernel(_WAIT, "wait"), (1,), (1,), (np.int64(_WAITED_CYCLES),))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print all rows."""
    found = parser(__doc__)
    found.add_argument("--shape", type=Shape.parse, default=Shape.parse("64x1024x1024x1024"))
    found.add_argument("--precision", choices=MODULAR_PRECISIONS, default="7xint8")
    found.add_argument("--settle", type=float, default=0.4)
    found.add_argument("--seconds", type=float, default=1.6)
    found.add_argument("--pieces", type=int, nargs="*", default=[1, 4])
    arguments = found.parse_args(argv)
    import cupy

    from benchmarks.exact_parts import KERNELS, PAIRS, Product

    product = Product(cupy, arguments.shape, arguments.precision)
    meter = EnergyMeter(cupy, product.device, arguments.settle, arguments.seconds)
    table = Table(arguments.csv)

    def add(what: str, operands: str, products: int, nbytes: int, call: Call) -> None:
        found = meter(call)
        row = EnergyRow(
            str(arguments.shape), arguments.precision, what, operands, products, nbytes,
            found.time_us, found.energy_mj, found.power_w, found.clock_mhz, product.device.name,
            versions(), timestamp(),
        )  # fmt: skip
        table.add([row], line(row))

    batch, of_piece = arguments.shape.batch, product.piece.products
    whole = len(product.pieces) * sum(map(product.nbytes, KERNELS))
    add("call", "normal", batch, whole, product.call())
    for products in arguments.pieces:
        call = product.call_in_pieces(products)
        add(f"call in pieces of {products}", "normal", batch, whole, call)
    for name, call in product.kernels():
        add(name, "normal", of_piece, product.nbytes(name), call)
    for kinds in PAIRS:
        call = product.of_residues(kinds)
        add("product", " x ".join(kinds), of_piece, product.nbytes("product"), call)
    for name, nbytes, call in copies(cupy):
        add("copy", name, 0, nbytes, call)
    add("one thread", "", 0, 0, waiting(cupy))
    return 0


def line(row: EnergyRow) -> str:
    """Return a row as it is printed."""
    return (
        f"{row.what:20} {row.operands:30} {row.products:3} {1e-9 * row.nbytes:6.2f} GB "
        f"{row.time_us:9.1f} us {row.energy_mj:8.1f} mJ {row.power_w:6.1f} W "
        f"{row.clock_mhz or 0:5.0f} MHz"
    )


if __name__ == "__main__":
    sys.exit(main())
