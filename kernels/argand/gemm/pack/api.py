"""Constant operands (weights, DFT matrices, gates): scaled, rounded, split once for many calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argand.checks import check_one_of
from argand.device import cpu, gpu
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.gemm import cpu as numpy_backend
from argand.gemm.families import Family, check_family, require_family
from argand.gemm.operands import SIDES, Op, Side, as_operand, native_pairs, on_gpu, oriented_shape
from argand.gemm.pack.packed import Packed
from argand.gemm.pairs import Pairs
from argand.gemm.rules import adapted_operand
from argand.precision import Precision, get_precision


def pack(
    x: Any,
    precision: str | Precision,
    *,
    side: Side = "a",
    op: Op = "N",
    rounding: Sequence[str] | str | None = None,
    kernels: Family | None = None,
) -> Packed:
    """Prepare an operand that many products share, so that each `gemm` need not do it again.

    Args:
        x: an operand as in `argand.gemm`: complex or real ``(..., rows, columns)`` of any strides,
            `Pairs`, or a NumPy structured array of r and i. What it holds now is packed; later
            changes do not show.
        precision, rounding: the precision and the rounding of the products.
        side: ``a`` for a left operand, ``b`` for a right one.
        op: the op of x, as ``op_a`` and ``op_b`` of `argand.gemm`; the products take it with op N.
        kernels: the family of the products' kernels, as in `argand.gemm`. Only ``wgmma`` multiplies
            planes; for the others a copy alone is kept. Both multiply those of moduli.

    Returns:
        What `argand.gemm` takes in x's place. On the CPU the result has the bits that x gives, or
        where its elements begin at no multiples of their size an aligned copy. On a GPU it holds
        planes: at a number of moduli two bytes for each of them a number; at the other precisions,
        on a Hopper card, 4 to 16 bytes a number, and of matrices up to 512 x 512 a complex64 copy
        beside them (8 bytes more), because small products of plain operands are faster than those
        of planes. Pack the operand that is read often and is small against the result:
        docs/experiments/2026-11-22-packed-operands.md has what it gains.

    Raises:
        ValueError: an unknown precision, rounding, side or op, fewer than two axes, kernels that
            the precision does not have.
        DeviceError: kernels that the device does not have.

    Example:
        >>> weights = np.array([[1, 1j], [0, 2]], np.complex64)
        >>> packed = argand.pack(weights, "3xfp16")
        >>> argand.gemm(packed, weights, precision="3xfp16")
        array([[1.+0.j, 0.+3.j],
               [0.+0.j, 4.+0.j]], dtype=complex64)
    """
    if has_foreign(x):
        packed: Packed = call_on_foreign(
            pack, {"x": x}, adapted=adapted_operand, pairs=Pairs, precision=precision, side=side,
            op=op, rounding=rounding, kernels=kernels,
        )  # fmt: skip
        return packed
    row = get_precision(precision, rounding, exact=True)
    if row.moduli and rounding is not None:
        raise ValueError(f"precision {row.name} takes no rounding, got {rounding!r}")
    check_one_of("side", side, SIDES)
    if isinstance(x, Packed):
        raise ValueError("x is packed already; pack the array that it was made of")
    x = as_operand(x, "x")
    device = gpu(x.device.id) if on_gpu(x) else cpu()
    check_family(kernels, row)
    require_family(kernels, device)
    shape = (*x.shape[:-2], *oriented_shape(x.shape, op, name="x"))
    data: Any
    if row.moduli:
        from argand.gemm.modular.api import pack_modular

        data = pack_modular(x, row.moduli, op, side)
    elif device.backend == "cuda":
        from argand.gemm.pack import gpu as gpu_packed

        data = gpu_packed.pack(native_pairs(row, x, "cuda"), op, row, side, kernels)
    else:
        data = numpy_backend.pack(native_pairs(row, x, "cpu"), op, row, side)
    return Packed(shape, row, side, device, data.nbytes, data)
