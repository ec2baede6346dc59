"""Contractions of arrays of torch and JAX, and their gradients."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from argand import contract

from tests.kernels.contract.contractions import operands

SUBSCRIPTS = ["abc,cd->dab", "abc,acd->bda", "aab,bc->ac", "abcd,cdef->efab"]


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_of_torch(rng: np.random.Generator, subscripts: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a, b = (torch.tensor(x, requires_grad=True) for x in operands(rng, subscripts))
    expected = torch.einsum(subscripts, a, b.conj())
    torch.testing.assert_close(contract(subscripts, a, b, conj_b=True, bias=1j), expected + 1j)
    assert torch.autograd.gradcheck(
        lambda *x: contract(subscripts, *x, power=True, bias=torch.ones(1)), (a, b)
    )


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning",
    "ignore:Dynamo detected a call to a `functools.lru_cache`:UserWarning",
)  # fmt: skip
def test_compiled_by_torch(rng: np.random.Generator, subscripts: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import_module("argand.torch_ops")
    a, b = (torch.tensor(x, requires_grad=True) for x in operands(rng, subscripts))

    def call(a: Any, b: Any) -> Any:
        return contract(subscripts, a, b, conj_a=True, scale=2, bias=1j).abs().sum()

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    found, expected = (torch.autograd.grad(f(a, b), (a, b)) for f in (compiled, call))
    torch.testing.assert_close(found, expected)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_types_of_torch(rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a, b = (torch.tensor(x, dtype=torch.complex64) for x in operands(rng, SUBSCRIPTS[0]))
    found = contract(SUBSCRIPTS[0], a.to(torch.complex32), b.to(torch.complex32))
    assert found.dtype == torch.complex32
    exact = torch.einsum(SUBSCRIPTS[0], a, b)
    torch.testing.assert_close(found.to(torch.complex64), exact, rtol=0, atol=5e-2)
    for dtype in ("complex128", np.complex128, torch.complex128):
        assert contract(SUBSCRIPTS[0], a, b, dtype=dtype).dtype == torch.complex128
        assert contract("i,j->ij", np.ones(2), np.ones(2), dtype=dtype).dtype == np.complex128
    with pytest.raises(TypeError, match="dtype must be a type of torch, got complex256"):
        contract(SUBSCRIPTS[0], a, b, dtype=np.clongdouble)
    powers = contract(SUBSCRIPTS[0], a, b, power=True, dtype=torch.float16)
    assert powers.dtype == torch.float16


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_sums_and_numbers_of_torch() -> None:
    """Axes of one operand are summed in the product's type, and a bias keeps fp64's digits."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for dtype in (torch.float16, torch.bfloat16, torch.complex32):
        x = torch.full((2, 4), 3e4).to(dtype)
        found = contract("ij,k->ik", x, torch.ones(1))
        exact = x.to(torch.complex64).sum(1, keepdim=True)
        torch.testing.assert_close(found, exact, rtol=0, atol=0)
    x = torch.eye(2, dtype=torch.complex128)
    assert contract("ij,jk->ik", x, x, bias=0.1)[0, 1].item() == 0.1
    small = torch.tensor([[1, 2.0**-30]], dtype=torch.float32)
    assert contract("ij,jk->k", small, x).sum().item() == 1 + 2.0**-30
    assert contract("ij,k->ik", small.to(torch.int8), small[0]).dtype == torch.complex64


def test_a_real_type_of_torch_is_refused(rng: np.random.Generator) -> None:
    """A real result would drop imaginary parts."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a, b = (torch.tensor(x, dtype=torch.complex64) for x in operands(rng, SUBSCRIPTS[0]))
    with pytest.raises(ValueError, match="dtype must be complex but with power"):
        contract(SUBSCRIPTS[0], a, b, dtype=torch.float32)
    real = torch.empty(contract(SUBSCRIPTS[0], a, b).shape)
    with pytest.raises(ValueError, match=r"complex64, got .*float32"):
        contract(SUBSCRIPTS[0], a, b, out=real)


@pytest.mark.parametrize("subscripts", SUBSCRIPTS[:2])
def test_of_jax(rng: np.random.Generator, subscripts: str) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with jax.enable_x64(True):
        a, b = (jax.numpy.asarray(x) for x in operands(rng, subscripts))
        found = jax.jit(lambda *x: contract(subscripts, *x, bias=1j))(a, b)
        np.testing.assert_allclose(found, np.einsum(subscripts, a, b) + 1j, rtol=1e-12)


def test_sums_and_numbers_of_jax() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with jax.enable_x64(True):
        x = jax.numpy.full((2, 4), 3e4, "float16")
        found = contract("ij,k->ik", x, jax.numpy.ones(1, "bfloat16"))
        np.testing.assert_array_equal(found, np.full((2, 1), 4 * 3e4))
        eye = jax.numpy.eye(2, dtype="complex64")
        assert contract("ij,jk->ik", eye, eye, bias=0.5).dtype == np.complex64
    large = jax.numpy.full((1, 4), 2**30, "int32")  # JAX adds those in 32 bits, where they wrap
    found = contract("ij,k->ik", large, jax.numpy.ones(1))
    np.testing.assert_array_equal(found, [[2.0**32]])
