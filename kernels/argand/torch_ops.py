"""Operators of torch, ``torch.ops.argand.*``: torch.compile, CUDA graphs and autograd take them.

``import argand.torch_ops`` registers them. They are functions of their arguments alone: none writes
to its operands, and a gate returns a new state. Compiled code may call `argand.gemm` and the like
as well: they are replaced by the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from argand.dft.api import dft
from argand.dft.rules import RULES as DFT
from argand.frameworks.rules import Differentiated, FrameworkRules, Spec
from argand.frameworks.torch_gradients import gradients
from argand.frameworks.torch_tensors import OPERATORS
from argand.gates.api import apply_gate
from argand.gates.rules import RULES as GATE
from argand.gemm.api import gemm
from argand.gemm.rules import RULES as GEMM
from argand.precision import Precision, precision_name
from argand.softmax.api import log_softmax, logsumexp, softmax
from argand.softmax.rules import RULES as SOFTMAX

_PRECISION = "str? precision=None, str[]? rounding=None"
_SOFTMAX = f"(Tensor x, int axis=-1, {_PRECISION}, float scale=1.0, bool power=False, \
str? output=None) -> Tensor"


@dataclass(frozen=True)
class _Operator:
    """An operator: the call that it makes, its rules and its schema in torch's words."""

    call: Callable[..., Any]
    rules: FrameworkRules
    schema: str
    in_place: str | None = None
    """The argument that the call writes to, of which the operator takes a copy."""

    @property
    def name(self) -> str:
        return self.call.__name__


_OPERATORS = (
    _Operator(gemm, GEMM, f"(Tensor a, Tensor b, Tensor? c=None, Scalar alpha=1, Scalar beta=0, \
str op_a='N', str op_b='N', {_PRECISION}, float? tolerance=None, bool check=False, \
str? output=None, str? kernels=None) -> Tensor"),
    _Operator(dft, DFT, f"(Tensor x, int axis=-1, int? n=None, bool inverse=False, \
str norm='backward', {_PRECISION}) -> Tensor"),
    *(_Operator(call, SOFTMAX[call.__name__], _SOFTMAX)
      for call in (softmax, log_softmax, logsumexp)),
    _Operator(apply_gate, GATE, "(Tensor state, Tensor matrix, int[] targets, int[] controls=[], \
str? precision=None) -> Tensor", in_place="state"),
)  # fmt: skip


def _register(operator: _Operator) -> None:
    """Give torch an operator, its shapes and its gradients."""

    def run(*values: Any, **named: Any) -> Any:
        arrays, options = bound(values, named)
        if operator.in_place is not None:
            arrays[operator.in_place] = arrays[operator.in_place].clone()
            return operator.call(**arrays, **options)
        return operator.call(**arrays, **options, out=_empty(operator, arrays, options))

    registered = torch.library.custom_op(
        f"argand::{operator.name}", run, mutates_args=(), schema=operator.schema
    )
    arguments = registered._opoverload._schema.arguments
    tensors = [x.name for x in arguments if "Tensor" in str(x.type)]

    def bound(values: Sequence[Any], named: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return the arrays and the options of a call; torch leaves out those at their default."""
        given = {x.name: x.default_value for x in arguments if x.has_default_value()}
        given |= dict(zip((x.name for x in arguments), values, strict=False)) | dict(named)
        return {name: given.pop(name) for name in tensors}, given

    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        arrays, ctx.options = bound(inputs, {})
        ctx.names = [name for name, x in arrays.items() if x is not None]
        ctx.save_for_backward(*(arrays[name] for name in ctx.names), output)

    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        *kept, result = ctx.saved_tensors
        arrays = dict.fromkeys(tensors) | dict(zip(ctx.names, kept, strict=True))
        places = {x.name: place for place, x in enumerate(arguments)}
        needed = frozenset(name for name in ctx.names if ctx.needs_input_grad[places[name]])
        of = Differentiated(call, arrays, ctx.options, result, needed)
        found = gradients(of, operator.rules, grad)
        return tuple(found.get(x.name) for x in arguments)

    def call(*values: Any, **named: Any) -> Any:
        """Call the operator, so that its gradient can be traced and differentiated too."""
        return registered(*values, **named)

    def traced(given: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        """Make a call whose arrays are traced."""
        given, options = dict(given), {k: x for k, x in options.items() if x is not None}
        if given.pop("out", None) is not None:
            raise TypeError(f"a call of {operator.name} that torch traces takes no out")
        if isinstance(options.get("precision"), Precision):
            options["precision"] = precision_name(options["precision"])
        if isinstance(options.get("rounding"), str):
            options["rounding"] = [options["rounding"]]
        found = registered(**given, **options)
        changed = None if operator.in_place is None else given[operator.in_place]
        return found if changed is None else changed.copy_(found)

    OPERATORS[operator.call] = traced
    registered.register_fake(lambda *values, **named: _empty(operator, *bound(values, named)))
    registered.register_autograd(backward, setup_context=keep)


def _empty(operator: _Operator, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """Return the memory of a result, in the order of its axes."""
    specs = {name: None if x is None else _spec(x) for name, x in arrays.items()}
    first = next(x for x in arrays.values() if x is not None)
    adapted: dict[str, Any] = dict(options)
    if operator.rules.adapted is not None:
        operator.rules.adapted(dict(arrays), adapted)
    shape, dtype = operator.rules.result(specs, adapted, first.device.type == "cuda")
    return torch.empty(shape, dtype=getattr(torch, str(dtype)), device=first.device)


def _spec(x: Any) -> Spec:
    name = str(x.dtype).removeprefix("torch.")
    return Spec(tuple(x.shape), name if name in ("bfloat16", "complex32") else np.dtype(name))


for _operator in _OPERATORS:
    _register(_operator)
