"""What was wanted of the GPU's products, held against what a benchmark measured.

The wants are those that Hopper's kernels were built to: rates relative to what users would
otherwise pick, in the same run, times of named sizes, and errors. Nothing here decides whether a
result is right: the rows are verified by their a-priori bounds, which are wider than these limits.
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


Verdict = tuple[str, str, bool]
"""What was wanted, what was measured, and whether that is met."""


@dataclass(frozen=True)
class Want:
    """A want on rows of ours: of a shape, a precision and a kind of operands, to complex64."""

    shape: str
    precision: str

    @property
    def input(self) -> str:
        """The operands."""
        return "complex64"

    def verdict(self, rows: Sequence[Row]) -> Verdict | None:
        """The want against the rows; None where they lack what it speaks of."""
        raise NotImplementedError

    def fastest(self, rows: Sequence[Row]) -> Row | None:
        """Ours."""
        return min(self._own(rows), key=lambda row: float(row["time_us_p50"]), default=None)

    def _own(self, rows: Sequence[Row]) -> list[Row]:
        return _of(rows, self.shape, Peer("argand", self.precision), self.input)


@dataclass(frozen=True)
class Ratio(Want):
    """So many times a peer's rate in the same run."""

    least: float
    peer: Peer
    operands: str = "complex64"

    @property
    def input(self) -> str:
        """The operands."""
        return self.operands

    def verdict(self, rows: Sequence[Row]) -> Verdict | None:
        """See `Want`."""
        ours, peer = self.fastest(rows), self.peer
        theirs = [row["time_us_p50"] for row in _of(rows, self.shape, peer)]
        if ours is None or not theirs:
            return None
        ratio = min(theirs) / ours["time_us_p50"]
        wanted = f"{self.least:g} x {peer.implementation} {peer.precision}"
        return wanted, f"{ratio:.3g} x", ratio >= self.least


@dataclass(frozen=True)
class Time(Want):
    """At most so many milliseconds."""

    most_ms: float

    def verdict(self, rows: Sequence[Row]) -> Verdict | None:
        """See `Want`."""
        ours = self.fastest(rows)
        if ours is None:
            return None
        spent = ours["time_us_p50"]
        return f"at most {self.most_ms:g} ms", f"{spent / 1e3:.3g} ms", spent <= 1e3 * self.most_ms


@dataclass(frozen=True)
class CopyFloor(Want):
    """So much of the rate at which a copy moves the same bytes, of shapes that traffic limits.

    `Record.limit_fraction` is that, by the copy rate that was measured at the start of the run.
    """

    least: float

    def verdict(self, rows: Sequence[Row]) -> Verdict | None:
        """See `Want`."""
        ours = self.fastest(rows)
        if ours is None or ours["limit_fraction"] is None:
            return None
        reached = ours["limit_fraction"]
        return f"{self.least:.2f} of the copy floor", f"{reached:.3g}", reached >= self.least


@dataclass(frozen=True)
class Error(Want):
    """An error of at most so much, ||C^ - C||_F / ||C||_F, in every row."""

    most: float

    def verdict(self, rows: Sequence[Row]) -> Verdict | None:
        """See `Want`."""
        errors = [row["rel_frobenius"] for row in self._own(rows)]
        if not errors:
            return None
        worst = max(errors)
        return f"error at most {self.most:g}", f"{worst:.3g}", worst <= self.most


_CUBLAS = Peer("cublas", "fp32")
_FAST_TF32 = Peer("cublas", "tf32")
_TRITON = Peer("triton", "3xtf32")
_LARGE = ("4096x4096x4096", "8192x8192x8192")
_SMALL = tuple(f"{side}x{side}x{side}" for side in (256, 512, 1024, 2048))
_CUTLASS = "3456x4096x4096"


def _planar(precision: str) -> Peer:
    return Peer("cublaslt-planar", precision)


WANTS: tuple[Want, ...] = (
    *(Ratio(shape, "tf32", 2.2, _FAST_TF32) for shape in _LARGE),
    *(Ratio(shape, "3xtf32", 2.3, _CUBLAS) for shape in _LARGE),
    *(Ratio(shape, "3xtf32", 1.35, _TRITON) for shape in _LARGE),
    *(Ratio(shape, "3xfp16", 4.1, _CUBLAS) for shape in _LARGE),
    *(Ratio(shape, name, 2.0, _planar(name)) for name in ("fp16", "bf16") for shape in _LARGE),
    *(
        Ratio(shape, name, 2.2, _planar(name), "complex-half")
        for name in ("fp16", "bf16")
        for shape in _LARGE
    ),
    Time(_CUTLASS, "3xtf32", 3.6),
    Time(_CUTLASS, "3xfp16", 2.1),
    *(
        Error(shape, precision, most)
        for precision, most in (("tf32", 3.1e-4), ("3xtf32", 5e-7), ("3xfp16", 5e-7))
        for shape in (*_LARGE, _CUTLASS)
    ),
    CopyFloor("256x64x4096x64", "tf32", 0.8),
    Time("256x256x4096x256", "tf32", 1.8),
    Time("64x512x8192x512", "tf32", 3.7),
    Time("256x1024x1024x1024", "tf32", 7.0),
    *(
        Ratio(shape, precision, 1.0, Peer(library, peer))
        for shape in _SMALL
        for precision, peer in (("tf32", "tf32"), ("3xtf32", "fp32"), ("3xfp16", "fp32"))
        for library in ("cublas", "torch")
    ),
)


def judged(rows: Sequence[Row]) -> list[dict[str, str]]:
    """A line for each want that the rows tell about: what was wanted, what was measured, met."""
    found = []
    for want in WANTS:
        verdict = want.verdict(rows)
        if verdict is not None:
            wanted, measured, met = verdict
            found.append({
                "shape": want.shape, "precision": want.precision, "operands": want.input,
                "wanted": wanted, "measured": measured, "met": "yes" if met else "no",
            })  # fmt: skip
    return found


def _of(rows: Sequence[Row], shape: str, who: Peer, operands: str | None = None) -> list[Row]:
    """The verified rows of a shape, from any operands where none are named."""
    named = {"implementation": who.implementation, "precision": who.precision}
    return [
        row
        for row in timed_rows(rows, **named, output=who.output)
        if operands in (None, row["input"]) and _shape(row) == shape
    ]


def _shape(row: Row) -> str:
    sizes = [int(row[name]) for name in ("batch", "m", "n", "k")]
    return "x".join(str(size) for size in (sizes if sizes[0] != 1 else sizes[1:]))
