"""Functions of torch without a public name, and what a version that lacks them has instead."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

WITHOUT = """
import warnings
from types import SimpleNamespace
import torch
from argand.frameworks import torch_internals

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    none = SimpleNamespace()
    torch_internals.INTERNALS = torch_internals.torch_internals(none, none)
import argand.torch_ops

a, b = (torch.randn(2, 3, 3, dtype=torch.complex128, requires_grad=True) for _ in range(2))
for call in (argand.gemm, torch.ops.argand.gemm):
    assert torch.allclose(call(a, b), a @ b)
    assert torch.autograd.gradcheck(call, (a, b))
    many = torch.func.vmap(call, (0, None))(a, b[0])
    assert torch.allclose(many, a @ b[0])
    batch = torch.autograd.grad(call(a, b), a, torch.stack([a, b]), is_grads_batched=True)[0]
    assert torch.allclose(batch, torch.stack([a, b]) @ b.mH)
    tangent = torch.func.jvp(lambda x: call(x, b), (a,), (b,))[1]
    assert torch.allclose(tangent, b @ b)
"""


def test_calls_do_without_them() -> None:
    """In a process whose torch has none: values, gradients and transforms stay."""
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


def test_torch_as_installed_has_them() -> None:
    """None is missing, which would warn and make calls in a row take longer."""
    from argand.frameworks.torch_internals import torch_internals

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch_internals()


def test_public_functions_say_the_same() -> None:
    from argand.frameworks.torch_internals import INTERNALS, torch_internals

    with pytest.warns(RuntimeWarning, match=r"has no torch\._C\._are_func.*, torch\._C\._any_"):
        public = torch_internals(SimpleNamespace(), SimpleNamespace())
    x = torch.zeros(2)

    def both(y: Any) -> Any:
        assert public.are_transformed((y,))
        assert INTERNALS.are_transformed((y,))
        assert public.are_followed((y,))
        assert INTERNALS.are_followed((y,))
        return y

    torch.func.vmap(both)(x)
    torch.func.grad(lambda y: both(y).sum())(x)
    for given in ((x, None), (x, x.clone().requires_grad_())):
        for found in (public, INTERNALS):
            assert not found.are_transformed(given)
            assert found.any_requires_grad(*given) == (given[1] is not None)
    assert public.below_autograd is None


def changed(x: Any, how: str) -> Any:
    """Return a tensor of the same memory that is another in one way."""
    views = {
        "strides": x.t, "conjugate": x.conj, "negative": lambda: torch._neg_view(x),
        "shape": lambda: x.view(2, 8), "type": lambda: x.view(torch.float64).view(4, 8)[:, ::2],
        "parameter": lambda: torch.nn.Parameter(x, requires_grad=False),
        "gradient": lambda: x.detach().requires_grad_(),
    }  # fmt: skip
    return views[how]()


@pytest.mark.parametrize(
    "how", ["strides", "conjugate", "negative", "shape", "type", "parameter", "gradient"]
)
def test_a_check_sees_that_a_tensor_is_another(how: str) -> None:
    from argand.frameworks.torch_internals import INTERNALS, torch_internals

    with pytest.warns(RuntimeWarning, match="TensorGuards"):
        public = torch_internals(SimpleNamespace(), SimpleNamespace())
    x = torch.zeros(4, 4, dtype=torch.complex128)
    for check_of in (public.check_of, INTERNALS.check_of):
        for given in ((x, torch.ones_like(x)), (x, x)):
            check = check_of(given)
            assert check(*given)
            with torch.no_grad():
                assert check(*given)
            assert not check(given[0], changed(given[1], how))
        assert check_of((changed(x, how),))(changed(x, how))
        with torch.inference_mode():
            assert not check(x, x)
            assert check_of((x,))(x)


def recorded(call: Any) -> None:
    make_fx = import_module("torch.fx.experimental.proxy_tensor").make_fx
    make_fx(lambda y: (call(), y + 1)[1])(torch.ones(2))


def with_tangents(call: Any) -> None:
    with torch.autograd.forward_ad.dual_level():
        call()


FOLLOWED = {
    "vmap": lambda call: torch.func.vmap(lambda y: (call(), y)[1])(torch.ones(2)),
    "grad": lambda call: torch.func.grad(lambda y: (call(), y.sum())[1])(torch.ones(2)),
    "jvp": lambda call: torch.func.jvp(
        lambda y: (call(), y)[1], (torch.ones(2),), (torch.ones(2),)
    ),
    "functionalize": lambda call: torch.func.functionalize(lambda y: (call(), y + 1)[1])(
        torch.ones(2)
    ),
    "trace": lambda call: torch.jit.trace(
        lambda y: (call(), y + 1)[1], (torch.ones(2),), check_trace=False
    ),
    "make_fx": recorded,
    "forward mode": with_tangents,
}


@pytest.mark.parametrize("how", FOLLOWED)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_check_and_a_look_see_what_torch_follows(how: str) -> None:
    """A repeated call asks no more than these two."""
    from argand.frameworks.torch_internals import INTERNALS, torch_internals

    given = torch.zeros(3), torch.ones(3)
    check = INTERNALS.check_of(given)
    seen: list[tuple[bool, bool]] = []

    def look() -> None:
        repeated = check(*given) and not INTERNALS.pass_unseen(given)
        seen.append((INTERNALS.are_followed(given), not repeated))

    look()
    FOLLOWED[how](look)
    assert seen == [(False, False), (True, True)]
    with pytest.warns(RuntimeWarning, match="_len_torch_dispatch_stack"):
        public = torch_internals(SimpleNamespace(), SimpleNamespace())
    assert public.pass_unseen is public.are_followed
