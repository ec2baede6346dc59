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
        rules: of its gradients.
        names: of the arrays.
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
        of = _differentiated(ctx, along)
        of = of._replace(
            arrays={name: _without_tangent(x) for name, x in of.arrays.items()},
            result=_without_tangent(of.result),
        )

        def adjoint(grad: Any) -> tuple[Any, ...]:
            found = gradients(of, ctx.about.rules, grad)
            return tuple(found[name] for name in along)

        # Torch leaves forward mode for this, which a tangent of the tangent needs.
        with INTERNALS.forward(True):
            _, tangent_of = torch.func.vjp(adjoint, torch.zeros_like(of.result))
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
    given = dict(zip(about.names, values, strict=True))
    ctx.about, ctx.others = about, {}
    ctx.kept = [name for name, x in given.items() if isinstance(x, torch.Tensor)]
    ctx.others = {name: x for name, x in given.items() if name not in ctx.kept}
    saved = [*(given[name] for name in ctx.kept), result]
    ctx.save_for_backward(*saved)
    ctx.save_for_forward(*saved)


def _differentiated(ctx: Any, needed: Any) -> Differentiated:
    *saved, result = ctx.saved_tensors
    arrays = ctx.others | dict(zip(ctx.kept, saved, strict=True))
    about = ctx.about
    return Differentiated(about.call, arrays, about.options, result, frozenset(needed))


def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
    """Return the gradients of a call's arrays, None of those that need none."""
    names = ctx.about.names
    flags = zip(names, ctx.needs_input_grad, strict=False)
    of = _differentiated(ctx, (name for name, asked in flags if asked))
    found = gradients(of, ctx.about.rules, grad)
    return tuple(found.get(name) for name in names)


def gradients(of: Differentiated, rules: FrameworkRules, grad: Any) -> dict[str, Any]:
    """Return the gradients that are asked for, of the shape and type of their arguments."""
    if grad is None:
        return {}
    return {name: _fitted(x, of.arrays[name]) for name, x in rules.gradient(of, grad).items()}


def _fitted(grad: Any, x: Any) -> Any:
    """Return a gradient of an argument: real for a real one, summed where it was broadcast."""
    if grad.is_complex() and not x.is_complex():
        grad = grad.real
    return grad.sum_to_size(x.shape).to(x.dtype)
