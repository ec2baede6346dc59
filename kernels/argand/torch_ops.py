"""Operators of torch, ``torch.ops.argand.*``: torch.compile, CUDA graphs and autograd take them.

``import argand.torch_ops`` registers them. They are functions of their arguments alone: none writes
to its operands, and a gate returns a new state. Compiled code may call `argand.gemm` and the like
as well: they are replaced by the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch

from argand.checks import as_axis
from argand.device import is_cupy_array
from argand.dft.api import dft
from argand.dft.rules import RULES as DFT
from argand.framework import framework_of
from argand.frameworks.rules import FrameworkRules, Spec
from argand.frameworks.torch_gradients import DifferentiableCall, backward, keep
from argand.frameworks.torch_internals import INTERNALS
from argand.frameworks.torch_tensors import OPERATORS
from argand.gates.api import apply_gate
from argand.gates.rules import RULES as GATE
from argand.gemm.api import gemm
from argand.gemm.rules import RULES as GEMM
from argand.precision import Precision, precision_name
from argand.softmax.api import FUNCTIONS as SOFTMAX_FUNCTIONS
from argand.softmax.api import RULES as SOFTMAX

_LIBRARY = torch.library.Library("argand", "DEF")
_PLAIN_KEYS = frozenset(("CPU", "CUDA", "AutogradCPU", "AutogradCUDA", "Conjugate", "Negative"))
"""Dispatch keys of calls that torch neither traces nor transforms."""
# Torch watches the tables that compiled code reads: they have its types of arguments before.
_EXAMPLES: tuple[object, ...] = (
    None, 0, 0.0, 0j, (), [], np.empty(0), torch.empty(0), torch.nn.Parameter(),
)  # fmt: skip
for _example in _EXAMPLES:
    framework_of(_example)
    is_cupy_array(_example)
_below_autograd = INTERNALS.below_autograd or nullcontext


class _Operator:
    """An operator of torch, registered when it is made.

    ``torch.library.custom_op`` registers the same; a call of it takes the host 12 us longer.

    Args:
        call: the function that it calls, whose name it has.
        rules: shape and gradient of the call.
        schema: its arguments in torch's words.
        in_place: the argument that the call writes to; the operator takes a copy of it.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        rules: FrameworkRules,
        schema: str,
        in_place: str | None = None,
    ) -> None:
        self._call, self._rules, self._in_place = call, rules, in_place
        name = call.__name__
        _LIBRARY.define(f"{name}{schema}", tags=(torch.Tag.pt2_compliant_tag,))
        operator = getattr(torch.ops.argand, name)
        self._operator, arguments = operator, operator.default._schema.arguments
        self._names = [x.name for x in arguments]
        self._tensors = [x.name for x in arguments if "Tensor" in str(x.type)]
        self._defaults = {x.name: x.default_value for x in arguments if x.has_default_value()}
        _LIBRARY.impl(name, self._run, "CompositeExplicitAutograd")
        torch.library.register_fake(
            f"argand::{name}", lambda *values, **named: self._empty(*self._bound(values, named)),
            lib=_LIBRARY,
        )  # fmt: skip
        self._register_gradient(name)
        # torch.func's transforms, before they come to an implementation.
        _LIBRARY.impl(name, self._transformed, "FuncTorchDynamicLayerFrontMode")
        self._plain: dict[int, bool] = {}  # by the bits of dispatch keys
        OPERATORS[call] = self._traced

    def _register_gradient(self, name: str) -> None:
        if INTERNALS.below_autograd is not None:
            _LIBRARY.impl(name, self._dispatched, "Autograd", with_keyset=True)
            return

        def keep_all(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            arrays, options = self._bound(inputs, {})
            keep(ctx, self._differentiable(options), tuple(arrays.values()), output)

        def of_all(ctx: Any, grad: Any) -> tuple[Any, ...]:
            found = dict(zip(self._tensors, backward(ctx, grad), strict=True))
            return tuple(found.get(name) for name in self._names)

        torch.library.register_autograd(
            f"argand::{name}", of_all, setup_context=keep_all, lib=_LIBRARY
        )

    def _dispatched(self, keys: Any, *values: Any, **named: Any) -> Any:
        """Return the result, with a gradient where one is asked for."""
        if (
            torch.is_grad_enabled() and INTERNALS.any_requires_grad(*values, **named)
        ) or INTERNALS.may_have_tangents(values):
            return self._transformed(*values, **named)
        bits = keys.raw_repr()
        plain = self._plain.get(bits)
        if plain is None:
            found = str(keys).removeprefix("DispatchKeySet(").removesuffix(")")
            plain = self._plain[bits] = _PLAIN_KEYS.issuperset(found.split(", "))
        if plain:
            return self._computed(values, named)
        with _below_autograd():
            return self._operator.default(*values, **named)

    def _transformed(self, *values: Any, **named: Any) -> Any:
        """Return the result as torch.func transforms it, and with gradients."""
        arrays, options = self._bound(values, named)
        return self._differentiable(options).of(arrays)

    def _differentiable(self, options: Mapping[str, Any]) -> DifferentiableCall:
        def run(arrays: dict[str, Any]) -> Any:
            with _below_autograd():
                return self._operator(**arrays, **options)

        # By the operator, so that the gradient can be traced and differentiated too.
        return DifferentiableCall(
            run, self._operator, self._rules, tuple(self._tensors), options,
            partial(self._batched, options),
        )  # fmt: skip

    def _bound(
        self, values: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arrays and the options of a call; torch leaves out those at their default."""
        given = self._defaults | dict(zip(self._names, values, strict=False)) | dict(named)
        return {name: given.pop(name) for name in self._tensors}, given

    def _run(self, *values: Any, **named: Any) -> Any:
        # Below autograd torch cannot be asked for tangents; `_dispatched` has seen to those.
        if not INTERNALS.may_have_tangents(values):
            return self._computed(values, named)
        with INTERNALS.forward(False):
            return self._computed(values, named)

    def _computed(self, values: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return the result of the call, in the order of its axes."""
        # Without ``out``, so that a call that the call cache knows is repeated as it is.
        if self._in_place is None and len(values) <= len(self._tensors):
            found = self._call(*values, **named)
        else:
            given = dict(zip(self._names, values, strict=False))
            given.update(named)
            if self._in_place is not None:
                given[self._in_place] = given[self._in_place].clone()
            found = self._call(**given)
        return found if found.is_contiguous() else found.contiguous()

    def _empty(self, arrays: dict[str, Any], options: dict[str, Any]) -> Any:
        """Return the memory of a result, in the order of its axes."""
        arrays, options = dict(arrays), dict(options)
        if self._rules.adapted is not None:
            self._rules.adapted(arrays, options)
        specs = {name: None if x is None else _spec(x) for name, x in arrays.items()}
        device = next(x.device for x in arrays.values() if x is not None)
        shape, dtype = self._rules.result(specs, options, device.type == "cuda")
        return torch.empty(shape, dtype=getattr(torch, str(dtype)), device=device)

    def _batched(
        self, options: Mapping[str, Any], info: Any, in_dims: tuple[Any, ...], values: Sequence[Any]
    ) -> tuple[Any, int]:
        """Return the result over one more axis, and where it has it: calls take leading axes."""
        arrays, options = dict(zip(self._tensors, values, strict=True)), dict(options)
        axes = dict(zip(self._tensors, in_dims, strict=True))
        moved = {
            name: x.movedim(axes[name], 0) if axes.get(name) is not None else x
            for name, x in arrays.items()
        }
        batched = [name for name in moved if axes.get(name) is not None]
        if not self._rules.leading_axes:
            each = [
                self._operator(**{n: x[i] if n in batched else x for n, x in moved.items()},
                               **options)
                for i in range(info.batch_size)
            ]  # fmt: skip
            return torch.stack(each), 0
        self._refuse_examples(moved, batched, options)
        rank = max(x.ndim + (n not in batched) for n, x in moved.items() if x is not None)
        moved = {
            name: x if x is None else _with_rank(x, rank, name in batched)
            for name, x in moved.items()
        }
        if self._rules.spread is not None:
            self._rules.spread(moved, torch.broadcast_to)
        return self._operator(**moved, **options), 0

    def _refuse_examples(
        self, moved: Mapping[str, Any], batched: Sequence[str], options: dict[str, Any]
    ) -> None:
        """Raise ValueError where an array of the batch has too few axes, with those of one.

        It would be computed along the batch. An axis is counted from the last, as the batch is an
        axis before them.
        """
        specs = {
            name: None if x is None else _spec(x)._replace(shape=tuple(x.shape)[name in batched :])
            for name, x in moved.items()
        }
        if "axis" in options:
            first = self._tensors[0]
            rank = moved[first].ndim - (first in batched)
            options["axis"] = as_axis(options["axis"], rank) - rank
        device = next(x.device for x in moved.values() if x is not None)
        self._rules.result(specs, options, device.type == "cuda")

    def _traced(self, given: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        """Make a public call whose arrays are traced."""
        given, options = dict(given), {name: x for name, x in options.items() if x is not None}
        if given.pop("out", None) is not None:
            raise TypeError(f"a call of {self._call.__name__} that torch traces takes no out")
        device = next(x.device for x in given.values() if isinstance(x, torch.Tensor))
        given = {
            name: torch.as_tensor(x, device=device) if isinstance(x, np.ndarray) else x
            for name, x in given.items()
        }
        if isinstance(options.get("precision"), Precision):
            options["precision"] = precision_name(options["precision"])
        if isinstance(options.get("rounding"), str):
            options["rounding"] = [options["rounding"]]
        if self._in_place is None:
            return self._operator(**given, **options)
        changed = given[self._in_place]
        if not torch.compiler.is_compiling() or any(
            getattr(x, "requires_grad", False) for x in given.values()
        ):  # gradients need what it was
            given[self._in_place] = changed.clone()
        return changed.copy_(self._operator(**given, **options))


def _with_rank(x: Any, rank: int, batched: bool) -> Any:
    """Return x with axes of length 1 before its own, behind the batch where it has one."""
    missing = rank - x.ndim
    shape = (x.shape[0], *(1,) * missing, *x.shape[1:]) if batched else (*(1,) * missing, *x.shape)
    return x.reshape(shape)


def _spec(x: Any) -> Spec:
    name = str(x.dtype).removeprefix("torch.")
    return Spec(tuple(x.shape), name if name in ("bfloat16", "complex32") else np.dtype(name))


_PRECISION = "str? precision=None, str[]? rounding=None"
_OPERATORS = (
    _Operator(gemm, GEMM, f"(Tensor a, Tensor b, Tensor? c=None, Scalar alpha=1, Scalar beta=0, \
str op_a='N', str op_b='N', {_PRECISION}, float? tolerance=None, bool check=False, \
str? output=None, str? kernels=None) -> Tensor"),
    _Operator(dft, DFT, f"(Tensor x, int axis=-1, int? n=None, bool inverse=False, \
str norm='backward', {_PRECISION}) -> Tensor"),
    *(_Operator(call, SOFTMAX[name], f"(Tensor x, int axis=-1, {_PRECISION}, \
float scale=1.0, bool power=False, str? output=None) -> Tensor")
      for name, call in SOFTMAX_FUNCTIONS.items()),
    _Operator(apply_gate, GATE, "(Tensor state, Tensor matrix, int[] targets, int[] controls=[], \
str? precision=None) -> Tensor", in_place="state"),
)  # fmt: skip
"""Registered as torch knows them; kept as long as the module."""
