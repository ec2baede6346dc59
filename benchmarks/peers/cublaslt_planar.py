"""A peer: cublasLt's planar complex product of half-precision planes on tensor cores.

The planes are split, rounded and laid out before the clock starts, which favours it. Its heuristic
decides what it can do; of the algorithms and layouts of B that it offers the fastest is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Precision, to_pairs

from benchmarks.peers._cublaslt import (
    CUDA_C_16BF,
    CUDA_C_16F,
    CUDA_C_32F,
    PLANE_ALIGNMENT,
    Algorithm,
    Lt,
    Planes,
    library,
)
from benchmarks.peers._peer import (
    Candidate,
    CannotRunError,
    Peer,
    seconds_to_choose_by,
    unscaled,
)

_PRECISIONS = ("fp16", "bf16")
_KINDS = {"fp16": CUDA_C_16F, "bf16": CUDA_C_16BF, "fp32": CUDA_C_32F}
_TYPES = {"fp16": np.float16, "bf16": np.uint16, "fp32": np.float32}
"""Types that the parts of a format are stored in; of bf16 the bits."""
_WORKSPACE_BYTES = 64 << 20
_OFFERS = 8
"""Algorithms that are asked for, for each layout of B."""


def candidates() -> list[Candidate]:
    """Return each precision with a result in complex64 and in complex-half."""
    outputs = ("complex64", "complex-half")
    return [_candidate(name, out) for name in _PRECISIONS for out in outputs]


def rounding(precision: str) -> Precision:
    """Return the precision of planes that were rounded as they are."""
    return unscaled(PRECISIONS[precision])


def _algorithm(precision: str) -> str:
    return f"planar {precision}, summed in fp32"


def _candidate(name: str, output: str) -> Candidate:
    return Candidate(
        "cublaslt-planar", rounding(name), _algorithm(name),
        partial(_prepare, name, output), _compute, _joined, input="planar", output=output,
        chosen=lambda plan, *_: plan.description,
    )  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """Planar matrices in one buffer: plane (2, batch, rows, columns), row-major, each aligned."""

    buffer: Any
    shape: tuple[int, int, int]
    name: str

    @classmethod
    def empty(cls, like: Any, shape: tuple[int, int, int], name: str) -> Stored:
        """Return a buffer full of NaN for planes of format ``name``, on the device of ``like``."""
        dtype = np.dtype(_TYPES[name])
        size = math.ceil(math.prod(shape) * dtype.itemsize / PLANE_ALIGNMENT) * PLANE_ALIGNMENT
        nan = 0x7FC0 if name == "bf16" else np.nan
        # NumPy's functions make CuPy's arrays of CuPy's.
        buffer = np.full_like(like, nan, dtype=dtype, shape=(2, size // dtype.itemsize))
        return cls(buffer, shape, name)

    @classmethod
    def of(cls, x: Any, name: str) -> Stored:
        """Return complex64 (batch, rows, columns) in planes, rounded to nearest even."""
        found = cls.empty(x, x.shape, name)
        found.planes[...] = to_pairs(x, name).array.transpose(3, 0, 1, 2)
        return found

    @property
    def planes(self) -> Any:
        """(2, batch, rows, columns), a view."""
        return self.buffer[:, : math.prod(self.shape)].reshape(2, *self.shape)

    @property
    def address(self) -> int:
        """Address of the real plane."""
        return int(self.buffer.data.ptr)

    @property
    def layout(self) -> Planes:
        """As a column-major library sees it: transposed."""
        batch, rows, columns = self.shape
        return Planes(_KINDS[self.name], columns, rows, self.buffer.strides[0], batch)


@dataclass(frozen=True)
class Plan:
    """A plan of one shape. ``transposed``: B lies as (n, k), k contiguous like A's."""

    lt: Lt
    operation: Any
    layouts: tuple[Any, Any, Any]
    algorithm: Algorithm
    workspace: Any
    transposed: bool
    description: str

    def multiply(self, b: Stored, a: Stored, out: Stored) -> None:
        """Set C^T = B^T A^T: what is row-major to us is the transpose to the library."""
        import cupy

        self.lt.multiply(
            self.operation, self.layouts, (b.address, a.address, out.address), self.algorithm,
            (self.workspace.data.ptr, self.workspace.nbytes), cupy.cuda.get_current_stream().ptr,
        )  # fmt: skip


_PLANS: dict[tuple[tuple[int, ...], str, str], Plan] = {}
"""One for each (batch, m, n, k), format and format of the result: the copies of a candidate share
it."""


def _prepare(name: str, output: str, a: Any, b: Any) -> tuple[Any, ...]:
    """Return the plan, its operands and the place of its result."""
    *leading, m, k = a.shape
    n = b.shape[-1]
    batch = math.prod(leading)
    left, b = Stored.of(a.reshape(-1, m, k), name), b.reshape(-1, k, n)
    out = Stored.empty(a, (batch, m, n), name if output == "complex-half" else "fp32")
    key = ((batch, m, n, k), name, out.name)
    if key not in _PLANS:
        _PLANS[key] = _fastest(left, b, out)
    return _PLANS[key], right_operand(b, name, _PLANS[key].transposed), left, out, tuple(leading)


def right_operand(b: Any, name: str, transposed: bool) -> Stored:
    """Return B (batch, k, n) in planes as it is, or as (batch, n, k)."""
    return Stored.of(b.swapaxes(-1, -2) if transposed else b, name)


def _compute(
    plan: Plan, b: Stored, a: Stored, out: Stored, leading: tuple[int, ...]
) -> tuple[Stored, tuple[int, ...]]:
    plan.multiply(b, a, out)
    return out, leading


def _joined(computed: tuple[Stored, tuple[int, ...]]) -> Any:
    out, leading = computed
    return joined(out).reshape(*leading, *out.shape[1:])


def joined(stored: Stored) -> Any:
    """Return complex64 (batch, rows, columns) of planes."""
    planes = stored.planes
    if stored.name == "bf16":
        planes = (planes.astype(np.uint32) << 16).view(np.float32)
    parts = np.empty_like(planes, dtype=np.float32, shape=(*stored.shape, 2))
    parts[..., 0], parts[..., 1] = planes[0], planes[1]
    return parts.view(np.complex64)[..., 0]


def _fastest(a: Stored, b: Any, out: Stored) -> Plan:
    """Return the fastest of what is offered. Raises CannotRunError with what the library says."""
    import cupy

    lt, workspace = _handle(), cupy.empty(_WORKSPACE_BYTES, cupy.uint8)
    timed: list[tuple[float, Plan]] = []
    refused = []
    for transposed in (False, True):
        right = right_operand(b, a.name, transposed)
        try:
            # One that is refused when it runs leaves those before it.
            timed.extend(
                (seconds_to_choose_by(partial(plan.multiply, right, a, out)), plan)
                for plan in _offers(lt, right, a, out, workspace, transposed)
            )
        except CannotRunError as error:
            refused.append(f"B {_lies(transposed)}: {error}")
    if not timed:
        raise CannotRunError("; ".join(refused))
    return min(timed, key=lambda pair: pair[0])[1]


def _offers(
    lt: Lt, right: Stored, a: Stored, out: Stored, workspace: Any, transposed: bool
) -> list[Plan]:
    operation = lt.operation(transposed, False)
    layouts = (lt.layout(right.layout), lt.layout(a.layout), lt.layout(out.layout))
    offers = lt.algorithms(operation, layouts, _WORKSPACE_BYTES, _OFFERS)
    where = f"B {_lies(transposed)}"
    return [
        Plan(lt, operation, layouts, offer.algorithm, workspace, transposed,
             f"{where}, algorithm {index} of {len(offers)}")
        for index, offer in enumerate(offers, 1)
    ]  # fmt: skip


def _lies(transposed: bool) -> str:
    return "k-contiguous" if transposed else "row-major"


@lru_cache(maxsize=1)
def _handle() -> Lt:
    return Lt(library())


def _lacks() -> str:
    try:
        library()
    except (CannotRunError, OSError) as error:
        return (
            f"libcublasLt is not installed: {error}" if isinstance(error, OSError) else str(error)
        )
    return ""


PEER = Peer(
    name="cublaslt-planar", operation="gemm", backends=("cuda",), precisions=_PRECISIONS,
    algorithm=_algorithm, modules=("cupy",), prepared=candidates, precision=rounding, lacks=_lacks,
    version=lambda: f"cuBLASLt {library().cublasLtGetVersion()}",
)  # fmt: skip
