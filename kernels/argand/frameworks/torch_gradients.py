"""Gradients and tangents of calls on torch's tensors, by the rules of their operation."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.autograd import forward_ad

from argand.frameworks.rules import Differentiated, FrameworkRules
from argand.frameworks.torch_internals import INTERNALS


class DifferentiableCall(NamedTuple):
    """A call whose result has gradients of its tensors.

    Attributes:
        run: computes the result of arrays by their names, without a gradient.
        call: the same with gradients, of arrays and ``options``.
        rules: rules of its gradients.
        names: names of the arrays.
        options: its other arguments.
        mapped: the result over one more axis, and where it has it, from torch.func.vmap's
            information, the axes of the arrays that have it and the arrays; None without vmap.
    """

    run: Callable[[dict[str, Any]], Any]
    call: Callable[..., Any]
    rules: FrameworkRules
    names: tuple[str, ...]
    options: Mapping[str, Any]
    mapped: Callable[..., tuple[Any, int]] | None = None

    def of(self, arrays: Mapping[str, Any]) -> Any:
        """Return the result as a tensor whose gradients follow from those of its result."""
        return _WithGradients.apply(*(arrays[name] for name in self.names), self)

    def in_place(self, arrays: Mapping[str, Any], written: str) -> Any:
        """Return the array that ``run`` writes to, with the result and its gradients."""

        def run_apart(given: dict[str, Any]) -> Any:
            return self.run(given | {written: given[written].clone()})

        # The gradients of the other arguments need what it was.
        before = {**arrays, written: arrays[written].clone()}
        return arrays[written].copy_(self._replace(run=run_apart).of(before))


class _WithGradients(torch.autograd.Function):
    """Arguments are the arrays of a `DifferentiableCall` and, last, the call itself."""

    @staticmethod
    def forward(*given: Any) -> Any:
        *values, about = given
        return about.run(dict(zip(about.names, values, strict=True)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        *values, about = inputs
        keep(ctx, about, values, output)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        return (*backward(ctx, grad), None)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Return the tangent of the result: the adjoint of its gradient, which is linear."""
        along = dict(zip(ctx.about.names, tangents, strict=False))
        along = {name: x for name, x in along.items() if x is not None}
        of = _differentiated(ctx, frozenset(along))
        of = of._replace(
            arrays={name: _without_tangent(x) for name, x in of.arrays.items()},
            result=_without_tangent(of.result),
        )
        shape, dtype, device = ctx.specs["result"]
        zeros = torch.zeros(shape, dtype=dtype, device=device)

        def adjoint(grad: Any) -> tuple[Any, ...]:
            found = _gradients(ctx, of, grad)
            return tuple(found[name] for name in along)

        # Torch leaves forward mode for this, which a tangent of the tangent needs.
        with INTERNALS.forward(True):
            _, tangent_of = torch.func.vjp(adjoint, zeros)
            return tangent_of(tuple(along.values()))[0]

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *given: Any) -> tuple[Any, int]:
        *values, about = given
        found: tuple[Any, int] = about.mapped(info, in_dims[:-1], values)
        return found


def _without_tangent(x: Any) -> Any:
    return forward_ad.unpack_dual(x).primal if isinstance(x, torch.Tensor) else x


def keep(ctx: Any, about: DifferentiableCall, values: Sequence[Any], result: Any) -> None:
    """Keep in torch's context what the gradients of a call need."""
    given = {**dict(zip(about.names, values, strict=True)), "result": result}
    ctx.about = about
    tensors = {name: x for name, x in given.items() if isinstance(x, torch.Tensor)}
    ctx.others = {name: x for name, x in given.items() if name not in tensors}
    ctx.specs = {name: (x.shape, x.dtype, x.device) for name, x in tensors.items()}
    # What is saved keeps its memory, and torch lets nobody write to it before the gradient.
    reads = about.rules.reads(about.options, _needed(ctx))
    ctx.save_for_backward(*(x if name in reads else None for name, x in tensors.items()))
    ctx.save_for_forward(*tensors.values())


def _needed(ctx: Any) -> frozenset[str]:
    """Return the names of the arrays whose gradients are asked for."""
    flags = zip(ctx.about.names, ctx.needs_input_grad, strict=False)
    return frozenset(name for name, asked in flags if asked)


def _differentiated(ctx: Any, needed: frozenset[str]) -> Differentiated:
    arrays = ctx.others | dict(zip(ctx.specs, ctx.saved_tensors, strict=True))
    result, about = arrays.pop("result"), ctx.about
    shapes = {name: spec[0] for name, spec in ctx.specs.items()}
    return Differentiated(about.call, arrays, about.options, shapes, result, needed)


def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
    """Return the gradients of a call's arrays, None for those that need none."""
    found = _gradients(ctx, _differentiated(ctx, _needed(ctx)), grad)
    return tuple(found.get(name) for name in ctx.about.names)


def _gradients(ctx: Any, of: Differentiated, grad: Any) -> dict[str, Any]:
    """Return the gradients that are asked for, of the shape and type of their arguments."""
    if grad is None:
        return {}
    found = ctx.about.rules.gradient(of, grad)
    return {name: _fitted(x, *ctx.specs[name]) for name, x in found.items()}


def _fitted(grad: Any, shape: Any, dtype: Any, _device: Any) -> Any:
    """Return a gradient of an argument: real for a real one, summed where it was broadcast."""
    if grad.is_complex() and not dtype.is_complex:
        grad = grad.real
    return grad.sum_to_size(shape).to(dtype)
