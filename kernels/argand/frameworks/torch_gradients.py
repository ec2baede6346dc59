"""Gradients of calls on torch's tensors, by the rules of their operation."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from argand.frameworks.rules import Differentiated, FrameworkRules


def call_with_gradients(
    run: Callable[..., Any],
    call: Callable[..., Any],
    rules: FrameworkRules,
    arrays: Mapping[str, Any],
    options: Mapping[str, Any],
    written: str | None,
) -> Any:
    """Return ``run(arrays)`` as a tensor whose gradients follow from those of its result.

    ``call`` is the public function, whose result ``run`` returns, and ``written`` the argument that
    it changes in place, if there is one.
    """
    if written is None:
        return _WithGradients.apply(
            run, call, rules, tuple(arrays), options, None, *arrays.values()
        )
    # The gradients of the other arguments need what it was.
    before = {**arrays, written: arrays[written].clone()}
    found = _WithGradients.apply(
        run, call, rules, tuple(before), options, written, *before.values()
    )
    return arrays[written].copy_(found)


_BEFORE_ARRAYS = 6
"""Arguments of the function below that are not arrays."""


class _WithGradients(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        run: Callable[..., Any],
        call: Callable[..., Any],
        rules: FrameworkRules,
        names: Sequence[str],
        options: Mapping[str, Any],
        written: str | None,
        *values: Any,
    ) -> Any:
        arrays = dict(zip(names, values, strict=True))
        changed = {} if written is None else {written: arrays[written].clone()}
        result = run(arrays | changed)
        kept = [name for name, x in arrays.items() if isinstance(x, torch.Tensor)]
        others = {name: x for name, x in arrays.items() if name not in kept}
        ctx.about = call, rules, names, options, kept, others
        ctx.save_for_backward(*(arrays[name] for name in kept), result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        call, rules, names, options, kept, others = ctx.about
        *saved, result = ctx.saved_tensors
        arrays = others | dict(zip(kept, saved, strict=True))
        flags = zip(names, ctx.needs_input_grad[_BEFORE_ARRAYS:], strict=True)
        needed = frozenset(name for name, asked in flags if asked)
        found = gradients(Differentiated(call, arrays, options, result, needed), rules, grad)
        return (None,) * _BEFORE_ARRAYS + tuple(found.get(name) for name in names)


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
