"""What was wanted of the GPU's products, held against what a benchmark measured.

The wants are those that Hopper's kernels were built to: rates relative to what users would
otherwise pick, in the same run, and times of named sizes. Nothing here decides whether a result is
right; the rows are verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workflow.output.recorded import Row, timed_rows


@dataclass(frozen=True)
class Peer:
    """Rows to compare with: an implementation at a precision, to a result type."""

    implementation: str
    precision: str
    output: str = "complex64"


@dataclass(frozen=True)
class Want:
    """A want on one row of ours: so many times a peer's rate, or at most so many milliseconds."""

    shape: str
    precision: str
    least_ratio: float | None = None
    peer: Peer | None = None
    most_ms: float | None = None
    input: str = "complex64"


_CUBLAS = Peer("cublas", "fp32")
_FAST_TF32 = Peer("cublas", "tf32")
_TRITON = Peer("triton", "3xtf32")
_LARGE = ("4096x4096x4096", "8192x8192x8192")
_SMALL = tuple(f"{side}x{side}x{side}" for side in (256, 512, 1024, 2048))
_CUTLASS = "3456x4096x4096"


def _planar(precision: str) -> Peer:
    return Peer("cublaslt-planar", precision)


WANTS: tuple[Want, ...] = (
    *(Want(shape, "tf32", 2.2, _FAST_TF32) for shape in _LARGE),
    *(Want(shape, "3xtf32", 2.3, _CUBLAS) for shape in _LARGE),
    *(Want(shape, "3xtf32", 1.35, _TRITON) for shape in _LARGE),
    *(Want(shape, "3xfp16", 4.1, _CUBLAS) for shape in _LARGE),
    *(Want(shape, name, 2.0, _planar(name)) for name in ("fp16", "bf16") for shape in _LARGE),
    *(
        Want(shape, name, 2.2, _planar(name), input="complex-half")
        for name in ("fp16", "bf16")
        for shape in _LARGE
    ),
    Want(_CUTLASS, "3xtf32", most_ms=3.6),
    Want(_CUTLASS, "3xfp16", most_ms=2.1),
    Want("256x64x4096x64", "tf32", most_ms=0.318),
    Want("256x256x4096x256", "tf32", most_ms=1.8),
    Want("64x512x8192x512", "tf32", most_ms=3.7),
    Want("256x1024x1024x1024", "tf32", most_ms=7.0),
    *(
        Want(shape, precision, 1.0, Peer(library, peer))
        for shape in _SMALL
        for precision, peer in (("tf32", "tf32"), ("3xtf32", "fp32"), ("3xfp16", "fp32"))
        for library in ("cublas", "torch")
    ),
)


def judged(rows: Sequence[Row]) -> list[dict[str, str]]:
    """A line for each want that the rows tell about: what was wanted, what was measured, met."""
    found = []
    for want in WANTS:
        ours = _time(rows, want.shape, Peer("argand", want.precision), want.input)
        if ours is None:
            continue
        if want.most_ms is not None:
            wanted = f"at most {want.most_ms:g} ms"
            measured, met = f"{ours / 1e3:.3g} ms", ours <= 1e3 * want.most_ms
        else:
            assert want.peer is not None
            assert want.least_ratio is not None
            peer = want.peer
            theirs = _time(rows, want.shape, peer)
            if theirs is None:
                continue
            wanted = f"{want.least_ratio:g} x {peer.implementation} {peer.precision}"
            measured, met = f"{theirs / ours:.3g} x", theirs / ours >= want.least_ratio
        found.append({
            "shape": want.shape, "precision": want.precision, "operands": want.input,
            "wanted": wanted, "measured": measured, "met": "yes" if met else "no",
        })  # fmt: skip
    return found


def _time(rows: Sequence[Row], shape: str, who: Peer, operands: str | None = None) -> float | None:
    """The median of the fastest verified row, in microseconds."""
    named = {"implementation": who.implementation, "precision": who.precision}
    times = [
        row["time_us_p50"]
        for row in timed_rows(rows, **named, output=who.output)
        if operands in (None, row["input"]) and _shape(row) == shape
    ]
    return min(times, default=None)


def _shape(row: Row) -> str:
    sizes = [int(row[name]) for name in ("batch", "m", "n", "k")]
    return "x".join(str(size) for size in (sizes if sizes[0] != 1 else sizes[1:]))
