"""Exact products of CuPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import cupy

from argand.device import gpu
from argand.gemm.families import require_family
from argand.gemm.gpu_calls import CALLS, run_of
from argand.gemm.modular.kept_launches import launch_for
from argand.gemm.modular.packing import PackedPlanes, for_batch
from argand.gemm.modular.problem import ModularCall, ModularProblem
from argand.gemm.modular.reconstruction import times
from argand.gemm.operands import Op, Side
from argand.runtime.calls.call_cache import Key
from argand.runtime.calls.kept_call import Chosen
from argand.runtime.calls.layout import Layout, batched, device_of, result_array
from argand.runtime.memory.workspace_limit import allowed_workspace


def modular_product(
    call: ModularCall, a: Any, b: Any, c: Any, out: Any, key: Key | None = None,
    given: tuple[Any, ...] = (),
) -> Any:  # fmt: skip
    """Return alpha op(a) op(b) + beta c on the GPU that holds the arrays.

    Args:
        call: what to compute.
        a, b: CuPy arrays of one complex type, or packed ones of it, whose op is N.
        c: an array of that type, None where beta is 0.
        out: an array of that type or None.
        key: under which the call cache is to keep calls of this form; None where the arrays are
            not the caller's own.
        given: the operands as the caller gave them, where some are packed.

    Returns:
        out, or a new array of shape ``call.problem.shape``.

    Raises:
        ValueError: k too long for the moduli.
        DeviceError: the device has no such kernels.
        WrongProductError: the check failed.
    """
    problem = call.problem
    with device_of(*(x.memory if isinstance(x, PackedPlanes) else x for x in (a, b, c, out))):
        require_family(call.family, gpu(cupy.cuda.Device().id))
        # C may be out: the thread that writes an element has read it.
        inputs = [x for x in (a, b) if not isinstance(x, PackedPlanes)]
        inputs += [] if c is out else [c]
        target = result_array(out, problem.shape, str(a.dtype), inputs)
        if target.size and problem.k and problem.alpha != 0:
            product = _solve(call, a, b, c, target)
            if product.in_place and (out is None or target is out):
                operands, kind = given or (a, b, c), str(a.dtype)
                run = run_of(product.launch, operands, kind)
                chosen = Chosen(product.name)
                CALLS.keep(key, run, operands, out, problem.shape, kind, chosen=chosen)
        elif target.size:
            target[...] = 0 if c is None else times(c, problem.beta)
        if out is not None and target is not out:
            out[...] = target
            return out
        return target


class _Product(NamedTuple):
    """A launch of addresses a, b, c and out, its name, and whether it takes them as they are."""

    launch: Callable[[int, int, int, int], None]
    name: str
    in_place: bool


def _solve(call: ModularCall, a: Any, b: Any, c: Any, target: Any) -> _Product:
    """Compute a product, and return what does so again."""
    problem, shape = call.problem, call.problem.batch_shape
    left, right = _operand(a, problem.op_a, "a", shape), _operand(b, problem.op_b, "b", shape)
    result, addend = batched(target, shape), None if c is None else batched(c, shape)
    in_place = left.in_place and right.in_place
    in_place = in_place and (addend is None or addend.array.data.ptr == c.data.ptr)
    # C^T = B^T A^T, whose rows are contiguous; what is packed has its side.
    swapped = abs(result.row_stride) < abs(result.column_stride)
    swapped = swapped and not (left.packed or right.packed)
    if swapped:
        left, right, result = right, left, result.transposed
        addend = None if addend is None else addend.transposed
    prepared_launch = launch_for(
        ModularProblem(
            dtype=str(a.dtype), count=call.moduli, batch=problem.batch, a=left.layout,
            b=right.layout, c=None if addend is None else addend.layout, out=result.layout,
            conjugate_a=left.conjugated, conjugate_b=right.conjugated, alpha=complex(problem.alpha),
            beta=complex(problem.beta), family=call.family,
            proved=("column" if swapped else "row") if call.check else None, a_packed=left.packed,
            b_packed=right.packed,
        ),
        gpu(cupy.cuda.Device().id), allowed_workspace(),
    )  # fmt: skip

    def launch(a: int, b: int, c: int, out: int) -> None:
        prepared_launch(*((b, a) if swapped else (a, b)), c, out)

    first, second = (right, left) if swapped else (left, right)
    launch(
        first.address, second.address,
        int((addend or result).array.data.ptr), int(result.array.data.ptr),
    )  # fmt: skip
    return _Product(launch, prepared_launch.name, in_place)


class _Operand(NamedTuple):
    """An operand as launches take it, perhaps to be conjugated; ``alive`` keeps its memory."""

    layout: Layout
    address: int
    conjugated: bool
    packed: bool
    in_place: bool
    alive: Any


def _operand(x: Any, op: Op, side: Side, shape: tuple[int, ...]) -> _Operand:
    """Return an operand as launches take it, of the batch of a result."""
    if isinstance(x, PackedPlanes):
        found = for_batch(x, shape)
        return _Operand(
            found.layout,
            found.planes,
            conjugated=False,
            packed=True,
            in_place=found is x,
            alive=found,
        )
    view = batched(x, shape)
    at = int(view.array.data.ptr)
    oriented = view.transposed if (op == "N") == (side == "b") else view
    in_place = at == x.data.ptr
    return _Operand(
        oriented.layout, at, conjugated=op == "C", packed=False, in_place=in_place, alive=view.array
    )
