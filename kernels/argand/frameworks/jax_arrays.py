"""JAX's arrays in, arrays out, also in jit, vmap and grad: calls by XLA's foreign functions.

XLA hands the calls its own buffers, NumPy arrays over them on a CPU and CuPy arrays on a GPU, and
its stream: nothing is copied and nobody waits. Calls of small arrays that take no other memory may
be captured into XLA's CUDA graphs, whose replays call no Python. Only calls that have an array of
JAX import this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from argand.checks import as_axis
from argand.framework import framework_of, name_of
from argand.frameworks.array_interfaces import call_on_interfaces
from argand.frameworks.rules import Differentiated, ForeignCall, FrameworkRules, Spec
from argand.frameworks.xla_body import Body
from argand.frameworks.xla_calls import (
    TARGETS,
    number_of,
    on_stream_of_xla,
    raising_own_errors,
    register,
)


@dataclass(frozen=True)
class _Call:
    """A call without its arrays: what it takes to make it, and to trace it."""

    function: Callable[..., Any]
    rules: FrameworkRules
    names: tuple[str, ...]
    """Names of the arrays that the call has."""
    options: tuple[tuple[str, Any], ...]
    kinds: tuple[type, ...]
    """Types of the options: 1, which is refused, equals True, by which a call is kept."""
    written: str

    @cached_property
    def keywords(self) -> dict[str, Any]:
        """The options as the function takes them."""
        return dict(self.options)


def call_on_jax(foreign: ForeignCall, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """Return a call's result as an array of JAX.

    Arrays of JAX are never written: a gate returns the new state.

    Raises TypeError for an ``out``, and for calls that have no ``rules``, or `Pairs` or packed
    operands, and are traced, write to an array of JAX or lie on several devices.
    """
    rules = foreign.rules
    options = {name: _plain(name, x) for name, x in options.items()}
    for name, x in arrays.items():
        _refuse_types(name, x)
    if arrays.get("out") is not None:
        raise TypeError("arrays of JAX cannot be written: leave out away and take the result")
    if rules is None or any(map(_is_own, arrays.values())):
        _refuse_to_write_or_trace(foreign.function, arrays, foreign.written)
        arrays = {  # NumPy's DLPack knows no bfloat16
            name: x.astype(jnp.float32) if getattr(x, "dtype", None) == jnp.bfloat16 else x
            for name, x in arrays.items()
        }
        return on_stream_of_xla(partial(call_on_interfaces, foreign, arrays, options), arrays)
    given = {name: _as_jax(name, x) for name, x in arrays.items() if x is not None}
    if "axis" in options:  # counted from the last, so that vmap may put an axis before them
        rank = next(iter(given.values())).ndim
        options["axis"] = as_axis(options["axis"], rank) - rank
    if rules.adapted is not None:
        rules.adapted(given, options)
    rank = max(x.ndim for x in given.values())
    if rules.leading_axes and any(x.ndim != rank for x in given.values()):
        rules.result(_specs(given), options, has_gpu())  # which refuses an operand of too few axes
        given = {name: x.reshape((1,) * (rank - x.ndim) + x.shape) for name, x in given.items()}
    given = {name: _readable(x, "format" in options) for name, x in given.items()}
    if "format" in options and any(x.dtype == jnp.bfloat16 for x in given.values()):
        options["format"] = "bf16"
    kept = tuple(sorted((name, x) for name, x in options.items() if x is not None))
    kinds = tuple(type(x) for _, x in kept)
    call = _Call(foreign.function, rules, tuple(given), kept, kinds, foreign.written)
    values = tuple(given.values())
    with raising_own_errors():
        return _differentiable(call, *values) if _are_traced(values) else _compiled(call)(*values)


def _is_own(x: Any) -> bool:
    """Return whether x is `Pairs` or packed, which are no arrays to JAX."""
    return str(type(x).__module__).startswith("argand.")


def _refuse_to_write_or_trace(
    function: Callable[..., Any], arrays: Mapping[str, Any], written: str
) -> None:
    if any(isinstance(x, jax.core.Tracer) for x in arrays.values()):
        raise TypeError(
            f"{name_of(function)} cannot be traced by JAX: call it outside of jit and grad"
        )
    if framework_of(arrays.get(written)) == "jax":
        raise TypeError(
            f"{name_of(function)} writes to {written}, which an array of JAX does not allow: "
            "pass numpy.array of it"
        )


def _plain(name: str, x: Any) -> Any:
    """Return an option as numbers of Python, a sequence as a tuple.

    Raises TypeError for one that is not known when JAX traces the call.
    """
    if isinstance(x, jax.core.Tracer):
        raise TypeError(f"{name} must be known when JAX traces the call, got {x}")
    if isinstance(x, jax.Array | np.ndarray):
        x = x.tolist()
    return tuple(_plain(name, item) for item in x) if isinstance(x, list | tuple | range) else x


def _refuse_types(name: str, x: Any) -> None:
    """Raise TypeError for numbers that neither NumPy nor the calls know, and for JAX's keys."""
    if not isinstance(x, jax.Array):
        return
    kind = jnp.dtype(x.dtype) if not jnp.issubdtype(x.dtype, jax.dtypes.extended) else None
    if kind is None or (jnp.issubdtype(kind, jnp.floating) and kind.name not in _FLOATS):
        raise TypeError(
            f"{name} must be of integers, complex numbers or one of {list(_FLOATS)}, got {x.dtype}"
        )


_FLOATS = ("bfloat16", "float16", "float32", "float64")


def _as_jax(name: str, x: Any) -> Any:
    """Return an operand as an array of JAX. Raises TypeError for what holds no numbers."""
    if isinstance(x, jax.Array) and not x.weak_type:
        return x
    try:
        return jnp.asarray(x)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers, got {getattr(x, 'dtype', type(x))}") from error


def _readable(x: Any, reads_bits: bool) -> Any:
    """Return an array of a type that the calls read and JAX differentiates."""
    if x.dtype == jnp.bfloat16 and not reads_bits:
        return x.astype(jnp.float32)
    if jnp.issubdtype(x.dtype, jnp.inexact):
        return x
    wide = jax.config.jax_enable_x64 and x.dtype != jnp.bool_ and jnp.iinfo(x.dtype).bits > 16
    return x.astype(jnp.float64 if wide else jnp.float32)


def _are_traced(values: Sequence[Any]) -> bool:
    return any(isinstance(x, jax.core.Tracer) for x in values)


@lru_cache(maxsize=1024)
def _compiled(call: _Call) -> Callable[..., Any]:
    """Return a program of one call, which nothing differentiates: JAX keeps one for each form.

    To trace a call each time would take the host longer than all else.
    """
    found: Callable[..., Any] = jax.jit(lambda *values: _traced(call, values, in_graphs=False))
    return found


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _differentiable(call: _Call, *values: Any) -> Any:
    return _traced(call, values) if _are_traced(values) else _compiled(call)(*values)


def _forward(call: _Call, *values: Any) -> tuple[Any, Any]:
    result = _differentiable(call, *values)
    return result, (values, result)


def _backward(call: _Call, kept: Any, grad: Any) -> tuple[Any, ...]:
    """Return the gradients in JAX's convention, whose complex ones are conjugates of torch's."""
    values, result = kept
    arrays = dict(zip(call.names, values, strict=True))
    shapes = {name: x.shape for name, x in arrays.items()}
    options = {name: x for name, x in call.options if name != "format"}
    of = Differentiated(call.function, arrays, options, shapes, result, frozenset(arrays))
    found = call.rules.gradient(of, grad.conj())
    return tuple(_fitted(found[name].conj(), x) for name, x in arrays.items())


_differentiable.defvjp(_forward, _backward)


def _fitted(grad: Any, x: Any) -> Any:
    """Return a gradient of an argument: real for a real one, summed where it was broadcast."""
    if not jnp.iscomplexobj(x):
        grad = grad.real
    extra = grad.ndim - x.ndim
    grad = grad.sum(axis=tuple(range(extra)))
    ones = tuple(i for i, n in enumerate(x.shape) if n == 1 and grad.shape[i] != 1)
    return grad.sum(axis=ones, keepdims=True).astype(x.dtype)


def _specs(arrays: Mapping[str, Any]) -> dict[str, Spec]:
    return {
        name: Spec(x.shape, "bfloat16" if x.dtype == jnp.bfloat16 else np.dtype(x.dtype))
        for name, x in arrays.items()
    }


def _traced(call: _Call, values: Sequence[Any], *, in_graphs: bool = True) -> Any:
    """Return the result of XLA's call, which XLA may capture into graphs."""
    register()
    specs = _specs(dict(zip(call.names, values, strict=True)))
    spec = call.rules.result(specs, dict(call.options), has_gpu())
    if spec.dtype == "complex32":
        raise TypeError("JAX has no type for a result of complex-half: give its operands as Pairs")
    wide = str(spec.dtype) in ("float64", "complex128")
    if wide and not jax.config.jax_enable_x64:
        raise ValueError(f"a result of {spec.dtype} needs jax.config.jax_enable_x64")
    shape = jax.ShapeDtypeStruct(spec.shape, str(spec.dtype))
    if not in_graphs or not _is_captured(call, specs, spec):
        method = "expand_dims" if call.rules.leading_axes else "sequential"
        made = jax.ffi.ffi_call(TARGETS[0], shape, vmap_method=method)
        return made(*values, number=_number(call))

    def traced(*values: Any) -> Any:
        return jax.ffi.ffi_call(TARGETS[1], shape)(*values, number=_number(call))

    def over_a_batch(_: int, batched: list[bool], *many: Any) -> tuple[Any, bool]:
        # Anew, because what a batch takes differs. Calls broadcast leading axes.
        given = [x if one else x[None] for x, one in zip(many, batched, strict=True)]
        return _traced(call, given), True

    found: Any = jax.custom_batching.custom_vmap(traced)
    found.def_vmap(over_a_batch)
    return found(*values)


@cache
def has_gpu() -> bool:
    """Return whether JAX has a GPU."""
    return any(device.platform == "gpu" for device in jax.devices())


def _is_captured(call: _Call, specs: Mapping[str, Spec], result: Spec) -> bool:
    """Return whether XLA may capture a call into a graph."""
    if not call.rules.same_launches(call.keywords) or not has_gpu():
        return False
    return _takes_no_memory(call, *specs.values(), result)


@lru_cache(maxsize=1024)
def _takes_no_memory(call: _Call, *specs: Spec) -> bool:
    """Return whether a call takes none beside its arrays, the result last."""
    from argand.frameworks.captured_calls import takes_no_memory

    forms = [(x.shape, np.dtype("uint16" if x.dtype == "bfloat16" else x.dtype)) for x in specs]
    return takes_no_memory(lambda *arrays: _make(call, list(arrays[:-1]), arrays[-1]), forms)


def _number(call: _Call) -> Any:
    body = Body(lambda operands, result: _make(call, operands, result), call.rules.calls)
    return number_of(call, body)


def _make(call: _Call, operands: list[Any], result: Any) -> None:
    """Make a call, whose result goes where XLA wants it."""
    arrays = dict(zip(call.names, operands, strict=True))
    if call.written in arrays:
        result[...] = arrays[call.written]
        arrays[call.written] = result
    else:
        if call.rules.spread is not None:
            call.rules.spread(arrays, np.broadcast_to)  # of CuPy's arrays too
        arrays["out"] = result
    call.function(**arrays, **call.keywords)
