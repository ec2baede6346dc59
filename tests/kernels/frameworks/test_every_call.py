"""Every public call on arrays takes those of other libraries, and returns theirs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path
from typing import Any

import argand
import numpy as np
import pytest

from tests.kernels.frameworks.copies import copied_conjugate

GATE = argand.Gate([[0, 1j], [1, 0]], (1,))
POSITIONS = np.array([[0.0, 0, 0], [1, 2, 0], [5, -3, 0], [7, 7, 1]])
DIRECTIONS = np.array([[0.0, 0.1], [0.3, -0.2], [0.5, 0.5]])
CALLS: dict[str, tuple[Callable[..., Any], Any]] = {
    "gemm": (lambda x: argand.gemm(x, x), (4, 4)),
    "pack": (lambda x: argand.gemm(argand.pack(x, "tf32"), x, precision="tf32"), (4, 4)),
    "herk": (argand.herk, (3, 4, 5)),
    "herk_c": (lambda x: argand.herk(x, op="C", form="triangle"), (4, 5)),
    "herk_t": (lambda x: argand.herk(x, op="T"), (4, 5)),
    "contract": (lambda x: argand.contract("ij,kj->ik", x, x, conj_b=True), (4, 5)),
    "dft": (argand.dft, (3, 12)),
    "softmax": (lambda x: argand.softmax(x.imag), (3, 12)),
    "power": (lambda x: argand.log_softmax(x, power=True), (3, 12)),
    "logsumexp": (lambda x: argand.logsumexp(x.imag, 0), (3, 12)),
    "channelise": (lambda x: argand.channelise(x, 8, 4), (2, 64)),
    "spectrum": (lambda x: argand.spectrum(x, 16, average="all"), (2, 64)),
    "wide_beams": (lambda x: argand.beam_power(x, x[..., :1]), (2, 4, 4)),
    "beams": (lambda x: argand.beam_power(x[..., :1, :], x, integrate=2), (2, 4, 4)),
    "stokes": (lambda x: argand.beam_power(x[..., :1, :], x, detect="stokes"), (3, 2, 4, 4)),
    "image": (lambda x: argand.image(x, POSITIONS, [30e6, 50e6], DIRECTIONS), "hermitian"),
    "solve": (lambda x: argand.solve(x, x[:, 0]), (6, 6)),
    "details": (lambda x: argand.solve(x, x[:, :2], details=True).x, (6, 6)),
    "solve_hermitian": (lambda x: argand.solve_hermitian(x, x[..., :1]), "hermitian"),
    "probabilities": (lambda x: argand.probabilities(x, [2, 0]), (8,)),
    "expectation": (lambda x: argand.expectation(x, ["XYZ", ("ZIZ", 0.5)]), (8,)),
    "sample": (lambda x: argand.sample(x, 100, seed=3).outcomes, (8,)),
}  # fmt: skip
"""Calls of one complex array by name, and the shape of that array."""
COPIED = {"solve", "details", "solve_hermitian", "softmax", "logsumexp"}
"""Those that copy some of it: right-hand sides, and `.imag` of conjugates, which has gaps."""

ELSEWHERE = {"accelerate", "apply_gate"}
"""Public functions that take no array, or that tests of their own call on arrays of libraries."""
WAITING = {"solve", "details", "image", "sample"}
"""Those whose next step on the host, whose error or whose result's size the device decides."""


def drawn(shape: Any) -> Any:
    rng = np.random.default_rng(11)
    if shape == "hermitian":
        x = drawn((2, 4, 4))
        return x @ x.conj().mT
    return rng.standard_normal((*shape, 2)).astype("float32").view("complex64")[..., 0]


def in_place(x: Any) -> None:
    argand.run_circuit(x, [GATE])


def prepared(x: Any) -> None:
    argand.PreparedCircuit(argand.plan_circuit(3, [GATE]), x)(x)


@pytest.fixture(
    params=[
        "torch",
        "jax",
        pytest.param("torch on a GPU", marks=pytest.mark.gpu),
        pytest.param("jax on a GPU", marks=pytest.mark.gpu),
    ]
)
def of_library(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """The function that makes an array of a library, on a device."""
    name, _, on_gpu = str(request.param).partition(" ")
    if on_gpu:
        request.getfixturevalue("gpu")
    if not _has(name):
        return _skip(name)
    if name == "torch":
        torch = importlib.import_module("torch")
        return lambda x: torch.from_numpy(np.array(x)).to("cuda" if on_gpu else "cpu")
    jax = importlib.import_module("jax")
    try:
        device = jax.devices("gpu" if on_gpu else "cpu")[0]
    except RuntimeError:
        pytest.skip("JAX is installed without CUDA")
    return lambda x: jax.device_put(np.asarray(x), device)


def _has(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def _skip(name: str) -> Any:
    pytest.skip(f"{name} is not installed")


def on_host(x: Any) -> Any:
    return np.asarray(x.cpu() if hasattr(x, "cpu") else x)


def assert_close(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * abs(expected).max())


def test_every_public_function_of_an_operation_is_called() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    every = {name: getattr(argand, name) for name in argand.__all__}
    functions = {
        name for name, function in every.items()
        if isfunction(function) and function.__module__.endswith(".api")
    }  # fmt: skip
    assert {name for name in functions if f"argand.{name}" not in text} == ELSEWHERE


@pytest.mark.parametrize("name", CALLS)
def test_the_result_is_an_array_of_the_callers_library(
    name: str, of_library: Callable[[Any], Any]
) -> None:
    call, shape = CALLS[name]
    x = drawn(shape)
    found = call(of_library(x))
    assert type(found) is type(of_library(x))
    assert str(found.device) == str(of_library(x).device)
    assert_close(on_host(found), call(x))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", CALLS)
def test_conjugate_and_negative_views_are_their_numbers(
    name: str, device: str, request: pytest.FixtureRequest
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if device == "cuda":
        request.getfixturevalue("gpu")
    call, shape = CALLS[name]
    x = torch.from_numpy(drawn(shape)).to(device)
    for view in (x.conj(), torch._neg_view(x), torch._neg_view(x.conj())):
        if name == "solve_hermitian" and view.is_neg():
            continue  # the negative of a positive definite matrix is none
        kept = x.clone()
        assert_close(on_host(call(view)), call(on_host(view.resolve_conj().resolve_neg())))
        assert torch.equal(x, kept)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", sorted(set(CALLS) - COPIED))
def test_conjugate_views_are_not_copied(
    name: str, device: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if device == "cuda":
        request.getfixturevalue("gpu")
    monkeypatch.setattr(torch.Tensor, "resolve_conj", copied_conjugate)
    call, shape = CALLS[name]
    call(torch.from_numpy(drawn(shape)).to(device).conj())


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(set(CALLS) - WAITING))
def test_the_host_waits_for_no_call(gpu: Any, name: str) -> None:
    """A call on a stream that is still at work returns, so it copies nothing to the host."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    call, shape = CALLS[name]
    x = torch.from_numpy(drawn(shape)).to("cuda")
    for _ in range(2):  # compiles, and makes what is kept
        call(x)
    torch.cuda.synchronize()
    torch.cuda._sleep(1_000_000_000)
    call(x)
    assert not torch.cuda.current_stream().query()


@pytest.mark.parametrize("call", [in_place, prepared])
def test_circuits_change_a_tensor(call: Callable[[Any], None], of_library: Any) -> None:
    expected, state = drawn((8,)), of_library(drawn((8,)))
    call(expected)
    if type(state).__module__.startswith("jax"):
        with pytest.raises(TypeError, match=r"numpy\.array of it"):
            call(state)
        return
    call(state)
    assert_close(on_host(state), expected)


def test_pairs_are_views_of_tensors(of_library: Callable[[Any], Any]) -> None:
    voltages = np.random.default_rng(2).integers(-9, 9, (4, 6, 2), np.int8)
    found = argand.herk(argand.pairs(of_library(voltages)), precision="exact")
    whole = voltages[..., 0] + 1j * voltages[..., 1].astype("complex64")
    np.testing.assert_array_equal(found if isinstance(found, np.ndarray) else found.get(),
                                  whole @ whole.conj().T)  # fmt: skip
    half = argand.to_pairs(of_library(whole), "fp16")
    np.testing.assert_array_equal(half.array if not half.on_gpu else half.array.get(), voltages)
