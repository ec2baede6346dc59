"""A mode of torch that hands complex products on GPUs to a router."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from argand.accelerate.router import Router
from argand.frameworks.torch_internals import INTERNALS

_PRODUCTS = (
    torch.matmul, torch.mm, torch.bmm, torch.linalg.matmul, torch.Tensor.matmul, torch.Tensor.mm,
    torch.Tensor.bmm, torch.Tensor.__matmul__,
)  # fmt: skip
_TYPES = (torch.complex64, torch.complex128)


class MatmulMode(TorchFunctionMode):
    """A mode in which products of complex matrices of one type on one GPU are the router's."""

    def __init__(self, router: Router) -> None:
        super().__init__()
        self._router = router

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Make a call of torch's, a product by the router."""
        kwargs = kwargs or {}
        if function not in _PRODUCTS or kwargs or len(args) != 2 or not routable(*args):
            return function(*args, **kwargs)
        a, b = args
        forms = ((x.dtype, x.shape, x.stride(), x.is_conj(), x.device) for x in (a, b))
        form = *forms, torch.is_grad_enabled() and (a.requires_grad or b.requires_grad)
        return self._router.product("torch", function, a, b, form)


def routable(a: Any, b: Any) -> bool:
    """Return whether these are complex matrices of one type on one GPU, untraced by torch."""
    if torch.compiler.is_compiling() or INTERNALS.are_transformed((a, b)):
        return False
    matrices = all(
        type(x) in (torch.Tensor, torch.nn.Parameter)
        and x.ndim >= 2
        and x.dtype in _TYPES
        and x.is_cuda
        and x.device == a.device
        and x.dtype == a.dtype
        for x in (a, b)
    )
    return matrices and not torch.cuda.is_current_stream_capturing()
