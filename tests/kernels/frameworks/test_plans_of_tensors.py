"""Plans take tensors of torch and arrays of JAX, as the calls do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import (
    DftPlan,
    GemmPlan,
    PreparedCircuit,
    SoftmaxPlan,
    dft,
    gemm,
    launched,
    pack,
    plan_circuit,
    run_circuit,
    softmax,
)

from tests.kernels.frameworks.plan_cases import PLANS, planned_case
from tests.kernels.frameworks.tensors import drawn

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name == "cuda":
        request.getfixturevalue("gpu")
    return name


@pytest.fixture(params=PLANS)
def planned(request: pytest.FixtureRequest, device: str) -> tuple[Any, Any, Any]:
    """A plan of tensors, its call and how to draw other tensors."""
    return planned_case(request.param, device)


def test_a_plan_computes_what_the_call_does(planned: tuple[Any, Any, Any]) -> None:
    plan, call, arrays = planned
    for seed in (3, 5):
        given = arrays(seed)
        expected = call(*given)
        found = plan(*given)
        assert type(found) is torch.Tensor
        assert found.device == expected.device
        assert torch.equal(found, expected)
        out = torch.empty_like(expected)
        for _ in range(4):  # the last ones may be graphs
            out.fill_(float("nan"))
            assert plan(*given, out=out) is out
            assert torch.equal(out, expected)


def test_other_tensors_are_refused(planned: tuple[Any, Any, Any]) -> None:
    plan, _, arrays = planned
    first, *others = arrays(3)
    for view in (first.conj(), torch._neg_view(first)):
        with pytest.raises(ValueError, match="must not be a conjugate or negative view"):
            plan(view, *others)
    with pytest.raises(ValueError, match="as planned, got complex128"):
        plan(first.to(torch.complex128), *others)
    with pytest.raises(TypeError, match="requires a gradient"):
        plan(first.clone().requires_grad_(), *others)
    plan(first, *others)


def test_what_a_plan_cannot_read_in_place_is_refused() -> None:
    x = drawn(4, 6)
    with pytest.raises(ValueError, match="a of a plan must not be a conjugate"):
        GemmPlan(x.conj(), x.T)
    with pytest.raises(ValueError, match="uint16 with format='bf16'"):
        SoftmaxPlan(x.real.to(torch.bfloat16))


def test_arrays_may_follow_tensors(planned: tuple[Any, Any, Any], device: str) -> None:
    plan, call, arrays = planned
    given = arrays(3)
    expected = call(*given).cpu().numpy()
    if device == "cuda":
        import cupy

        found = plan(*map(cupy.from_dlpack, given)).get()
    else:
        found = plan(*(x.numpy() for x in given))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_results_have_the_type_that_the_call_gives(device: str) -> None:
    x = drawn(16, 16, device=device)
    planned: list[tuple[Any, Any, Any]] = [
        (SoftmaxPlan, softmax, x.real.to(torch.float16)),
        (lambda x: GemmPlan(x, x), lambda x: gemm(x, x), x.to(torch.complex32)),
    ]
    for plan_of, call, given in planned:
        expected = call(given)
        plan = plan_of(given)
        given = (given,) * len(plan.names[:2])
        assert expected.dtype == given[0].dtype
        assert torch.equal(torch.view_as_real(plan(*given).cfloat()),
                           torch.view_as_real(expected.cfloat()))  # fmt: skip
        out = torch.empty_like(expected)
        assert plan(*given, out=out) is out


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_pairs_and_packed_operands(device: str) -> None:
    a, b = (drawn(16, 16, device=device, seed=i) for i in range(2))
    half = a.to(torch.complex32)
    plan = GemmPlan(half, b.to(torch.complex32), precision="fp16", output="complex-half")
    found = plan(half, b.to(torch.complex32))
    assert found.dtype == torch.complex32
    assert torch.linalg.norm(found.to(a.dtype) - a @ b) <= 4e-3 * torch.linalg.norm(a @ b)
    packed = pack(a, "tf32")
    plan = GemmPlan(packed, b, precision="tf32")
    assert torch.equal(plan(packed, b), gemm(packed, b, precision="tf32"))


def test_a_saved_plan_is_loaded_for_tensors(device: str, tmp_path: Path) -> None:
    x = drawn(6, 8, device=device)
    DftPlan(x, inverse=True).save(tmp_path / "dft.json")
    plan = DftPlan.load(tmp_path / "dft.json", x)
    assert torch.equal(plan(x), dft(x, inverse=True))
    assert "x complex64 (6, 8)" in plan.describe()


def test_plans_of_jax() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x = jax.numpy.ones((4, 4), "complex64")
    plan = GemmPlan(x, x)
    assert isinstance(plan(x, x), jax.Array)
    half = x.real.astype("float16")
    assert SoftmaxPlan(half)(half).dtype == softmax(half).dtype == half.dtype
    with pytest.raises(ValueError, match="must be of a type that NumPy has, got bfloat16"):
        SoftmaxPlan(x.real.astype("bfloat16"))
    with pytest.raises(TypeError, match="cannot be written"):
        plan(x, x, out=x)
    with pytest.raises(TypeError, match="cannot be traced"):
        jax.jit(plan)(x, x)


@pytest.mark.gpu
def test_a_tensor_that_became_another_is_seen(gpu: Any) -> None:
    """A plan looks at memory, shape and strides at each call, not at the object alone."""
    x, y = (drawn(8, 8, device="cuda", seed=i) for i in range(2))
    plan = DftPlan(x)
    plan(x)
    x.data = y.clone()
    assert torch.equal(plan(x), dft(y))
    x.t_()
    with pytest.raises(ValueError, match="strides"):
        plan(x)
    x.t_().resize_(4, 8)  # in the same memory
    with pytest.raises(ValueError, match=r"as planned, got complex64 \(4, 8\)"):
        plan(x)


@pytest.mark.gpu
def test_a_circuit_is_repeated_on_the_last_state(gpu: Any) -> None:
    """As it is found then, on torch's stream, in its graphs, and on others between."""
    gates = [([[0.6, 0.8j], [0.8j, 0.6]], (qubit,)) for qubit in (1, 9, 4)]
    circuit = plan_circuit(12, gates, device=gpu)
    first, other = (drawn(1 << 12, device="cuda", seed=seed) for seed in range(2))
    prepared = PreparedCircuit(circuit, first)

    def check(state: Any) -> None:
        expected = state.clone()
        run_circuit(expected, circuit)
        assert prepared(state) is state
        assert torch.equal(state, expected)

    for state in (first, first, first, other, first, other, other):
        check(state)
    first.data = other.clone()
    check(first)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        first.mul_(0.5)
        prepared(first)
    stream.synchronize()
    expected = first.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        prepared(first)
    graph.replay()
    run_circuit(expected, circuit)
    assert torch.equal(first, expected)
    first.requires_grad_()
    with pytest.raises(TypeError, match="requires a gradient"):
        prepared(first)
    first.requires_grad_(False).resize_(1 << 11)
    with pytest.raises(ValueError, match="as prepared"):
        prepared(first)


@pytest.mark.gpu
def test_parameters_are_called_as_tensors_are(gpu: Any) -> None:
    x, y = (drawn(32, 32, device="cuda", seed=i) for i in range(2))
    weights = torch.nn.Parameter(x)
    plan = GemmPlan(x, y, precision="3xtf32")
    with pytest.raises(TypeError, match="requires a gradient"):
        plan(weights, y)
    expected = gemm(x, y, precision="3xtf32")
    with torch.no_grad():
        for _ in range(3):
            assert torch.equal(plan(weights, y), expected)
            assert torch.equal(gemm(weights, y, precision="3xtf32"), expected)
    assert gemm(weights, y, precision="3xtf32").requires_grad
    assert torch.equal(plan(x, y), expected)
    x.requires_grad_()  # the tensor that the plan has seen
    with pytest.raises(TypeError, match="requires a gradient"):
        plan(x, y)


@pytest.mark.gpu
def test_a_result_that_is_given_again(gpu: Any) -> None:
    """At its addresses the launch is started at once: with the same checks and the same record."""
    a, b, c = (drawn(64, 64, device="cuda", seed=i) for i in range(3))
    plan, out = GemmPlan(a, b, precision="3xtf32"), torch.empty_like(a)
    expected = gemm(a, b, precision="3xtf32")
    for _ in range(4):
        with launched() as names:
            assert plan(a, b, out=out) is out
        assert torch.equal(out, expected)
        assert len(names) == 1
        out.zero_()
    version = out._version
    plan(a, b, out=out)
    assert out._version == version + 1
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        a.copy_(c)
        plan(a, b, out=out)
    stream.synchronize()
    assert torch.equal(out, gemm(c, b, precision="3xtf32"))
    with pytest.raises(ValueError, match="c must be None"):
        plan(a, b, c, out=out)
    out.resize_(32, 128)  # in the same memory
    with pytest.raises(ValueError, match="out must have"):
        plan(a, b, out=out)
    with pytest.raises(ValueError, match="overlap"):
        plan(a, b, out=a)
