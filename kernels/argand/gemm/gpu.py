"""Complex products on a GPU: our tensor-core kernels, and cuBLAS for fp64 and fp32."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import cupy

from argand.device import gpu
from argand.gemm import cublas, tuned
from argand.gemm.families import require_family
from argand.gemm.gpu_calls import CALLS, empty, run_of
from argand.gemm.modular.moduli import EXACT_ALGORITHM
from argand.gemm.operands import Op, Side
from argand.gemm.pack.gpu import PackedOperand, on_hopper, rows_by_k
from argand.gemm.pack.launch import Planes, planes_for
from argand.gemm.pairs import Pairs, to_pairs
from argand.gemm.pairs_launch import as_halves, in_words, words
from argand.gemm.prepare import PLAN_OVERRIDE, prepare
from argand.gemm.problem import GemmProblem
from argand.gemm.product_form import OperandForm, ProductForm
from argand.gemm.squares import squared
from argand.precision import Precision
from argand.runtime.calls.call_cache import Key
from argand.runtime.calls.kept_call import Chosen
from argand.runtime.calls.layout import Batched, batched, device_of, result_array, writable


def gemm_algorithm(precision: Precision) -> str:
    """Return how `gemm` computes at a precision, for records; `argand.launched` names kernels."""
    if precision.moduli:
        return EXACT_ALGORITHM
    if precision.exact_operands:
        return cublas.algorithm(precision.name)
    products = "" if len(precision.products) == 1 else f" ({len(precision.products)} products)"
    return f"{precision.operand.name} 4M{products}"


def gemm(problem: GemmProblem, a: Any, b: Any, c: Any, out: Any, key: Key | None = None) -> Any:
    """Solve a GemmProblem on the GPU that holds its arrays; shapes and ``out`` are checked.

    Args:
        problem: the sizes, ops, scalars and precision.
        a, b: arrays, `Pairs` of the precision's format or of int8, or `PackedOperand`.
        c: an array or None.
        out: an array, `Pairs` where the problem's output is complex-half, or None.
        key: under which the call cache is to keep calls of this form.

    Raises PlanError where the architecture has no legal tile, CompileError where NVRTC fails,
    DeviceError where it has not the problem's family of kernels.
    """
    problem, a, b = _unpack_copies(problem, a, b)
    if problem.precision.exact_operands:
        return cublas.gemm(problem, a, b, c, out, problem.precision.name, key)
    with device_of(a, b, c, out):
        require_family(problem.kernels, gpu(cupy.cuda.Device().id))
        narrow = problem.output in ("power", "complex-half")
        if narrow and not (_has_wgmma(problem) and problem.k and problem.alpha != 0):
            return _narrowed(
                problem, gemm(replace(problem, output="complex64"), a, b, c, None), out
            )
        given_a, given_b, given_c = a, b, c
        a, b = _as_kernels_read(problem, a, b)
        if c is not None:
            c = c.astype("complex64", copy=False) if problem.beta != 0 else None
        # A call that converts an operand cannot be launched at the same addresses again.
        if not (a is given_a and b is given_b and (c is None or c is given_c)):
            key = None
        return _computed(problem, a, b, c, out, key, given_c)


def _narrowed(problem: GemmProblem, found: Any, out: Any) -> Any:
    """Return the squared magnitudes of complex64 numbers, or the pairs that they are rounded to."""
    if problem.output == "power":
        return squared(found, out)
    rounded = to_pairs(found, problem.precision.operand.name)
    if out is None:
        return rounded
    out.assign(rounded)
    return out


def _as_kernels_read(problem: GemmProblem, a: Any, b: Any) -> tuple[Any, Any]:
    """Return operands as the kernels read them: both pairs in the precision's format, or neither.

    Beside an operand that is not of pairs, whose scales are its own, pairs become complex64, which
    is exact; so do pairs of a product that wgmma does not compute.
    """
    if isinstance(a, Pairs) and isinstance(b, Pairs) and _has_wgmma(problem):
        name = problem.precision.operand.name
        return as_halves(a, name), as_halves(b, name)
    return tuple(x.to_complex64() if isinstance(x, Pairs) else x for x in (a, b))


def _computed(
    problem: GemmProblem, a: Any, b: Any, c: Any, out: Any, key: Key | None, given_c: Any
) -> Any:
    """Compute the product as complex64, as squared magnitudes in float32 or as pairs of 16 bits.

    ``c`` may be ``out``: each of its elements is read by the thread that writes it, before it does.
    """
    others = [x.array if isinstance(x, Pairs) else x for x in (a, b)]
    inputs = [x for x in others if not isinstance(x, PackedOperand)] + [c] * (c is not out)
    target, kind = _target(problem, out, inputs)
    memory = target.array if isinstance(target, Pairs) else target
    plain = out is None or target is out
    if memory.size and (problem.k == 0 or problem.alpha == 0):
        _write_beta_c(problem, c, target)
    elif memory.size:
        if isinstance(target, Pairs):
            memory = words(target)
        _prepare_and_launch(
            problem, a, b, c, batched(memory, problem.batch_shape), key if plain else None,
            (a, b, given_c, out), kind,
        )  # fmt: skip
    if plain:
        return target
    if isinstance(out, Pairs):
        out.assign(target)
    else:
        out[...] = target
    return out


def _target(problem: GemmProblem, out: Any, inputs: list[Any]) -> tuple[Any, str]:
    """Return the array that the kernel writes, if possible ``out``, and its type or format."""
    if problem.output == "complex-half":
        name = problem.precision.operand.name
        usable = out is not None and in_words(out) and writable(out.array, inputs)
        return (out if usable else empty(problem.shape, name)), name
    kind = "float32" if problem.output == "power" else "complex64"
    return result_array(out, problem.shape, kind, inputs), kind


def _write_beta_c(problem: GemmProblem, c: Any, target: Any) -> None:
    """Compute beta C where there is no product; its operands are not read."""
    if c is None:
        target.fill(0)
    else:
        cupy.multiply(c, cupy.complex64(problem.beta), out=target)


def _unpack_copies(problem: GemmProblem, a: Any, b: Any) -> tuple[GemmProblem, Any, Any]:
    """Return packed operands that are only copies as arrays, with their op in the problem."""
    if isinstance(a, PackedOperand) and a.planes is None:
        problem, a = replace(problem, op_a=a.op), a.copy
    if isinstance(b, PackedOperand) and b.planes is None:
        problem, b = replace(problem, op_b=b.op), b.copy
    return problem, a, b


def _has_wgmma(problem: GemmProblem) -> bool:
    """Return whether the wgmma family may run: it alone reads and writes pairs of 16 bits."""
    family = problem.kernels if PLAN_OVERRIDE.value is None else PLAN_OVERRIDE.value.family
    return on_hopper() and family in (None, "wgmma")


def _prepare_and_launch(
    problem: GemmProblem,
    a: Any,
    b: Any,
    c: Any,
    out: Batched,
    key: Key | None = None,
    given: tuple[Any, ...] = (),
    output: str = "complex64",
) -> None:
    """Prepare and launch a product; with a key keep the call, whose operands were ``given``.

    ``output`` is the result's type, or the format of a result of pairs.
    """
    shape = problem.batch_shape
    addend = None if c is None else batched(c, shape)
    form_a, source_a = _operand_source(a, problem.op_a, "a", shape)
    form_b, source_b = _operand_source(b, problem.op_b, "b", shape)
    form = ProductForm(
        problem, form_a, form_b, None if addend is None else addend.layout, out.layout
    )
    launch = prepare(form)
    launch(source_a.argument, source_b.argument, (addend or out).array.data.ptr, out.array.data.ptr)
    c_in_place = addend is None or addend.array.data.ptr == c.data.ptr
    if key is not None and source_a.in_place and source_b.in_place and c_in_place:
        operands = given[:3]
        run = run_of(launch, operands, output)
        entry = tuned.key(form.question())
        chosen = Chosen(launch.name, launch.choice, entry)
        CALLS.keep(key, run, operands, given[3], problem.shape, output, chosen=chosen)


@dataclass(frozen=True, eq=False)
class _OperandSource:
    """A launch's argument for an operand, and whether it is the caller's own memory.

    ``alive`` holds the memory of an address until the launch.
    """

    argument: int | Planes
    in_place: bool
    alive: Any = None


def _operand_source(
    x: Any, op: Op, side: Side, batch_shape: tuple[int, ...]
) -> tuple[OperandForm, _OperandSource]:
    """Return the form of an operand, and the argument of a launch for it."""
    if isinstance(x, PackedOperand):
        assert x.planes is not None
        planes = planes_for(x.planes, x.batch_shape, batch_shape)
        copy = None if planes.copy is None else batched(planes.copy, batch_shape).layout
        form = OperandForm(None, batched=planes.batches > 1, copy=copy)
        return form, _OperandSource(planes, planes is x.planes)
    view = rows_by_k(x, op, side, batch_shape)
    layout = view.layout
    form = OperandForm(layout, isinstance(x, Pairs), op == "C", layout.batch_stride != 0)
    given = x.array if isinstance(x, Pairs) else x
    address = int(view.array.data.ptr)
    return form, _OperandSource(address, address == given.data.ptr, view.array)
