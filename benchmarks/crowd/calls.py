"""Calls of a crowd, drawn by a seed: operands, options, and how a result lies in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import argand
import numpy as np
import numpy.typing as npt
from argand.device import cpu, gpu

Array = npt.NDArray[Any]
Rng = np.random.Generator
_LENGTHS = (1, 2, 3, 8, 17, 33, 64, 100, 257)
_PRECISIONS = (*argand.PRECISIONS, "7xint8", "15xint8")


@dataclass(frozen=True)
class Call:
    """A call that takes its operands, and ``out`` or None, and returns its result.

    Attributes:
        operands: as they are in the memory of the host; calls that change one return it.
        layout: how a result lies that is given: a name of `LAYOUTS`, empty for none.
    """

    name: str
    operands: tuple[Array, ...]
    run: Callable[..., Any]
    layout: str = ""


def _plain(arrays: Any, shape: Sequence[int], dtype: Any) -> Any:
    return arrays.empty(shape, dtype)


def _between(arrays: Any, shape: Sequence[int], dtype: Any) -> Any:
    length = shape[-1] if shape else 1
    found = arrays.empty((*shape[:-1], length + 3), dtype)[..., :length]
    return found if shape else found[0, ...]


def _turned(arrays: Any, shape: Sequence[int], dtype: Any) -> Any:
    return arrays.empty(shape[::-1], dtype).T


def _shifted(arrays: Any, shape: Sequence[int], dtype: Any) -> Any:
    return arrays.empty(int(np.prod(shape)) + 1, dtype)[1:].reshape(shape)


LAYOUTS: dict[str, Callable[[Any, Sequence[int], Any], Any]] = {
    "plain": _plain, "between others": _between, "turned": _turned, "shifted": _shifted,
}  # fmt: skip
_ROWS = ("plain", "shifted")
"""Layouts in which a result is contiguous."""


def draw(seed: int, number: int) -> Call:
    """Return the call of a number of a seed."""
    rng = np.random.default_rng([seed, number])
    make = _OPERATIONS[int(rng.integers(len(_OPERATIONS)))]
    return make(rng)


def _numbers(rng: Rng, shape: Sequence[int], dtype: str) -> Array:
    kind = np.dtype(dtype)
    if kind.kind == "i":
        return rng.integers(-50, 50, shape).astype(kind)
    found = rng.standard_normal(shape)
    return (found + 1j * rng.standard_normal(shape) if kind.kind == "c" else found).astype(kind)


def _one(rng: Rng, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _layout(rng: Rng, *names: str) -> str:
    return str(_one(rng, "", *(names or LAYOUTS)))


def _complex(precision: str) -> str:
    return "complex128" if precision in ("fp64", "15xint8") else "complex64"


def _product(rng: Rng) -> Call:
    precision, batch = str(_one(rng, *_PRECISIONS)), _one(rng, (), (), (3,), (17,))
    m, n, k = (int(_one(rng, *_LENGTHS)) for _ in range(3))
    op_a, op_b = (_one(rng, "N", "T", "C") for _ in "ab")
    dtype = _complex(precision)
    a = _numbers(rng, (*batch, *((m, k) if op_a == "N" else (k, m))), dtype)
    kind = dtype if rng.random() < 0.7 else _one(rng, "float32", "int16")
    b = _numbers(rng, (*batch, *((k, n) if op_b == "N" else (n, k))), kind)
    operands: tuple[Array, ...] = (a, b)
    options: dict[str, Any] = {"alpha": _one(rng, 1, 1, 0.5 - 2j)}
    if rng.random() < 0.3:
        operands, options["beta"] = (a, b, _numbers(rng, (*batch, m, n), dtype)), _one(rng, 1, 2j)
    if precision in argand.PRECISIONS and rng.random() < 0.15:
        options["output"] = "power"
    layout = _layout(rng)
    name = f"gemm {precision} {a.shape}{op_a} {b.shape}{b.dtype}{op_b} {options} out {layout}"

    def run(*given: Any, out: Any) -> Any:
        return argand.gemm(*given, op_a=op_a, op_b=op_b, precision=precision, out=out, **options)

    return Call(name, operands, run, layout)


_CONTRACTIONS = (
    "bc,b->cb", "bc,b->bc", "ab,bc->ca", "abc,cb->ab", "abc,b->b", "aab,bc->ca", "abcd,cdb->bda",
    "ab,cd->dacb",
)  # fmt: skip


def _contraction(rng: Rng) -> Call:
    subscripts = str(_one(rng, *_CONTRACTIONS))
    precision = str(_one(rng, "fp64", "fp64", "fp32", "3xtf32", "tf32", "3xfp16"))
    lengths = {label: int(_one(rng, 1, 3, 8, 17, 33)) for label in "abcd"}
    dtype, (first, rest) = _complex(precision), subscripts.split(",")
    second, result = rest.split("->")
    a, b = (_numbers(rng, [lengths[x] for x in labels], dtype) for labels in (first, second))
    options: dict[str, Any] = {"scale": _one(rng, 1, 1, 0.5 - 1j), "bias": _one(rng, None, 1 + 1j)}
    flags = ("conj_a", "conj_b", "conj", *(["power"] if rng.random() < 0.2 else []))
    options.update({name: bool(rng.integers(2)) for name in flags})
    layout = _layout(rng)
    operands: tuple[Array, ...] = (a, b)
    if rng.random() < 0.2:  # in place of the number
        operands = (a, b, _numbers(rng, [lengths[result[-1]]], dtype))
    name = f"contract {subscripts} {precision} {a.shape} {b.shape} {options} out {layout}"

    def run(x: Any, y: Any, *scale: Any, out: Any) -> Any:
        given = {**options, "scale": scale[0]} if scale else options
        return argand.contract(subscripts, x, y, precision=precision, out=out, **given)

    return Call(name, operands, run, layout)


def _transform(rng: Rng) -> Call:
    precision = str(_one(rng, *argand.PRECISIONS))
    length = int(_one(rng, 1, 2, 7, 16, 60, 96, 127, 256, 1000, 1009, 4096))
    shape, axis = _one(rng, ((length,), 0), ((5, length), 1), ((64, length), 1), ((length, 6), 0))
    kind = _complex(precision) if rng.random() < 0.8 else _one(rng, "float32", "int16")
    x, inverse, layout = _numbers(rng, shape, kind), bool(rng.integers(2)), _layout(rng)
    name = f"dft {precision} {shape}{kind}, axis {axis}, inverse {inverse}, out {layout}"

    def run(given: Any, out: Any) -> Any:
        return argand.dft(given, axis, inverse=inverse, precision=precision, out=out)

    return Call(name, (x,), run, layout)


def _rows(rng: Rng) -> Call:
    function = _one(rng, argand.softmax, argand.log_softmax, argand.logsumexp)
    shape = _one(rng, (7,), (5, 100), (64, 1000), (3, 40_000), (2, 5, 300))
    axis, kind = int(_one(rng, -1, -1, 0)), _one(rng, "float32", "float16", "float64", "int16")
    precision, layout = str(_one(rng, "fp32", "fp16", "fp64")), _layout(rng)
    name = f"{function.__name__} {precision} {shape}{kind}, axis {axis}, out {layout}"

    def run(x: Any, out: Any) -> Any:
        return function(x, axis, precision=precision, out=out)

    return Call(name, (_numbers(rng, shape, kind),), run, layout)


def _hermitian_product(rng: Rng) -> Call:
    precision, n, k = str(_one(rng, *_PRECISIONS)), *(int(_one(rng, *_LENGTHS)) for _ in "nk")
    form, layout = _one(rng, "full", "triangle"), _layout(rng)

    def run(a: Any, out: Any) -> Any:
        return argand.herk(a, precision=precision, form=form, out=out)

    a = _numbers(rng, _one(rng, (n, k), (3, n, k)), _complex(precision))
    return Call(f"herk {precision} {a.shape} {form} out {layout}", (a,), run, layout)


def _systems(rng: Rng) -> Call:
    n, dtype = int(_one(rng, 1, 3, 8, 17, 32)), str(_one(rng, "complex64", "complex128"))
    v, layout = _numbers(rng, (9, n, n + 2), dtype), _layout(rng)
    operands = (v @ v.conj().swapaxes(-1, -2), _numbers(rng, (9, n, 2), dtype))

    def run(r: Any, b: Any, out: Any) -> Any:
        return argand.solve_hermitian(r, b, out=out)

    return Call(f"solve_hermitian {dtype} {n}, out {layout}", operands, run, layout)


def _gates(rng: Rng) -> Call:
    precision, qubits = str(_one(rng, *argand.PRECISIONS)), int(_one(rng, 3, 8, 14))
    gates = []
    for _ in range(int(_one(rng, 1, 1, 6))):
        width = int(_one(rng, 1, 2, 3))
        matrix = np.linalg.qr(_numbers(rng, (1 << width, 1 << width), "complex128"))[0]
        gates.append(argand.Gate(matrix, tuple(map(int, rng.permutation(qubits)[:width]))))

    def run(state: Any, out: Any) -> Any:
        if len(gates) == 1:
            argand.apply_gate(state, gates[0].matrix, gates[0].targets, precision=precision)
        else:
            device = cpu() if isinstance(state, np.ndarray) else gpu(state.device.id)
            plan = argand.plan_circuit(qubits, gates, precision=precision, device=device)
            argand.PreparedCircuit(plan, state)(state)
        return state

    state = _numbers(rng, (1 << qubits,), _complex(precision))
    return Call(f"{len(gates)} gates {precision} on {qubits} qubits", (state,), run)


def _signals(rng: Rng) -> Call:
    precision = str(_one(rng, "fp32", "fp64", "3xfp16", "tf32"))
    x, layout = _numbers(rng, (3, 2048), _one(rng, "float32", "complex64")), _layout(rng, *_ROWS)
    which = int(rng.integers(2))

    def run(given: Any, out: Any) -> Any:
        if which:
            return argand.channelise(given, 64, 3, precision=precision, out=out)
        return argand.spectrum(given, 64, precision=precision, out=out)

    name = f"{'channelise' if which else 'spectrum'} {precision} {x.dtype}, out {layout}"
    return Call(name, (x,), run, layout)


def _beams(rng: Rng) -> Call:
    precision, layout = str(_one(rng, *argand.PRECISIONS)), _layout(rng, *_ROWS)
    w, x = (_numbers(rng, shape, _complex(precision)) for shape in ((17, 33), (33, 64)))

    def run(w: Any, x: Any, out: Any) -> Any:
        return argand.beam_power(w, x, integrate=4, precision=precision, out=out)

    return Call(f"beam_power {precision}, out {layout}", (w, x), run, layout)


_OPERATIONS = (
    _product, _product, _product, _contraction, _contraction, _transform, _transform, _rows, _rows,
    _hermitian_product, _systems, _gates, _signals, _beams,
)  # fmt: skip
