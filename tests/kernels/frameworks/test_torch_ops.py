"""Operators of torch: their schemas, shapes and gradients by torch's own check; compiled code."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from argand import GemmPlan, apply_gate, dft, gemm, herk, logsumexp, pack, softmax

from tests.kernels.frameworks.tensors import drawn_double as drawn

torch = pytest.importorskip("torch", reason="torch is not installed")
make_fx = import_module("torch.fx.experimental.proxy_tensor").make_fx
torch_ops = import_module("argand.torch_ops")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


CASES = {
    "gemm": lambda d: ((drawn(2, 3, 4, device=d), drawn(4, 5, device=d), drawn(2, 3, 5, device=d)),
                       {"alpha": 2j, "beta": 0.5}),
    "gemm of real": lambda d: ((drawn(3, 4, device=d, dtype=torch.float64),
                                drawn(3, 5, device=d)), {"op_a": "T"}),
    "gemm of conjugates": lambda d: ((drawn(3, 4, device=d).conj(), drawn(5, 4, device=d).mH), {}),
    "dft": lambda d: ((drawn(3, 4, device=d), 0, 5, True), {}),
    "softmax": lambda d: ((drawn(3, 4, device=d, dtype=torch.float64), 0), {}),
    "log_softmax": lambda d: ((drawn(3, 4, device=d),), {"power": True}),
    "logsumexp": lambda d: ((drawn(3, 4, device=d, dtype=torch.float64), 0), {}),
    "apply_gate": lambda d: ((drawn(16, device=d), drawn(4, 4, device=d), [2, 0], [3]), {}),
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning",
    "ignore:The .grad attribute of a Tensor:UserWarning",  # the check's own, by torch 2.14
)  # fmt: skip
def test_operators_pass_torchs_check(name: str, device: str) -> None:
    given, named = CASES[name](device)
    tensors = [x.requires_grad_() if isinstance(x, torch.Tensor) else x for x in given]
    torch.library.opcheck(getattr(torch.ops.argand, name.split()[0]), tensors, named)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_compiled_code_may_make_the_calls(device: str) -> None:
    def made(a: Any, b: Any, state: Any) -> Any:
        apply_gate(state, a[:2, :2], [1])
        apply_gate(state, np.array([[0, 1j], [1, 0]]), [0])
        return softmax(dft(gemm(a, b, precision=torch.complex128), 0).abs(), 0) + state.abs()

    given = drawn(8, 8, device=device), drawn(8, 8, device=device), drawn(8, device=device)
    compiled = torch.compile(made, fullgraph=True, backend="aot_eager")
    expected = made(given[0], given[1], given[2].clone())
    torch.testing.assert_close(compiled(given[0], given[1], given[2].clone()), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_compiled_gates_have_gradients(device: str) -> None:
    """Though the state, which they need, is changed in place."""
    state = drawn(8, device=device)

    def made(matrix: Any) -> Any:
        return apply_gate(state.clone(), matrix, [1]).abs().square().sum()

    matrix = drawn(2, 2, device=device).requires_grad_()
    compiled = torch.compile(made, fullgraph=True, backend="aot_eager")
    found, expected = (torch.autograd.grad(call(matrix), matrix)[0] for call in (compiled, made))
    torch.testing.assert_close(found, expected)


MAPPED = {
    "gemm": (gemm, torch.matmul, ((3, 4), (4, 5))),
    "transform": (lambda x: dft(x, 0), lambda x: torch.fft.fft(x, dim=0), ((3, 4),)),
    "softmax": (lambda x: softmax(x.real, 0), lambda x: torch.softmax(x.real, 0), ((3, 4),)),
    "gate": (lambda s, m: apply_gate(s.clone(), m, [0]), lambda s, m: (m @ s[:, None])[:, 0],
             ((2,), (2, 2))),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPPED)
def test_vmap(name: str) -> None:
    """Over the first operand, and over all."""
    ours, theirs, shapes = MAPPED[name]
    many = [drawn(6, *shape) for shape in shapes]
    single = [many[0], *(x[1] for x in many[1:])]
    axes = (0, *(None for _ in many[1:]))
    for given, dims in ((single, axes), (many, 0)):
        found, expected = (torch.func.vmap(call, dims)(*given) for call in (ours, theirs))
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_of_a_batch_at_once(device: str) -> None:
    x = drawn(4, 4, device=device).requires_grad_()
    for call in (
        lambda x: gemm(x, x.detach().T), lambda x: dft(x, n=5), lambda x: dft(x, 0, n=2),
        torch.ops.argand.dft, lambda x: logsumexp(x, power=True),
        lambda x: apply_gate(x.clone().flatten(), x[:2, :2], [1], controls=[0]),
        lambda x: torch.ops.argand.apply_gate(x.flatten(), x, [3, 1]),
    ):  # fmt: skip
        result = call(x)
        many = drawn(2, *result.shape, device=device, dtype=result.dtype)
        found = torch.autograd.grad(result, x, many, is_grads_batched=True, retain_graph=True)[0]
        each = [torch.autograd.grad(result, x, one, retain_graph=True)[0] for one in many]
        torch.testing.assert_close(found, torch.stack(each))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_recorded_calls_are_operators(device: str) -> None:
    """torch.jit and make_fx (in its default mode) record calls on tensors that have memory."""
    x = drawn(3, 4, device=device)
    plan, out = GemmPlan(x, x.T), drawn(3, 3, device=device)
    for record in (lambda call: torch.jit.trace(call, x, check_trace=False),
                   lambda call: make_fx(call)(x)):  # fmt: skip
        for call in (lambda y: gemm(y, y.T), lambda y: softmax(dft(y).abs())):
            for _ in range(3):
                expected = call(2 * x)
            torch.testing.assert_close(record(call)(2 * x), expected)
        for call in (lambda y: herk(y), lambda y: plan(y, y.T), lambda y: plan(y, y.T, out=out)):
            for _ in range(3):
                call(x)
            with pytest.raises(TypeError, match=r"torch can trace .*, got"):
                record(call)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_calls_without_an_operator_stand_between_graphs() -> None:
    x = drawn(3, 4)
    plan = GemmPlan(x, x.T)
    for call in (herk, lambda x: plan(x, x.T)):
        compiled = torch.compile(lambda x, call=call: 2 * call(x + 1), backend="aot_eager")
        torch.testing.assert_close(compiled(x), 2 * call(x + 1))
    packed = pack(x, "tf32")
    call = torch.compile(lambda y: 2 * gemm(packed, y, precision="tf32"), backend="aot_eager")
    torch.testing.assert_close(call(x.T), 2 * gemm(packed, x.T, precision="tf32"))
    with pytest.raises(Exception, match="_between_graphs"):
        torch.compile(lambda x: herk(x), fullgraph=True, backend="aot_eager")(x)
    with pytest.raises(TypeError, match=r"torch can trace .*'gemm'.*, got herk of Tensor"):
        torch.func.vmap(herk)(x[None])


def test_a_type_derived_of_tensors_is_computed_as_they_are() -> None:
    class Named(torch.Tensor):
        """A type derived of tensors, as torchvision has."""

    x = drawn(3, 4)
    torch.testing.assert_close(gemm(x.as_subclass(Named), x.T), x @ x.T)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["3xtf32", "fp16"])
def test_graphs_that_torch_captures(gpu: Any, precision: str) -> None:
    """A graph owns what its kernels write: calls between replays change nothing in it."""
    a = drawn(300, 300, device="cuda", dtype=torch.complex64)
    graph = torch.cuda.CUDAGraph()
    torch.ops.argand.gemm(a, a, precision=precision)  # compiled and loaded before
    with torch.cuda.graph(graph):
        between = torch.ops.argand.gemm(a, a, precision=precision)
        found = gemm(between, a, precision=precision)
        del between
    for scale in (1.0, 3.0):
        a.mul_(scale)
        other = [gemm(a, a, precision=precision) for _ in range(4)]
        graph.replay()
        torch.cuda.synchronize()
        expected = (a.to(torch.complex128) @ a.to(torch.complex128)) @ a.to(torch.complex128)
        error = torch.linalg.vector_norm(found - expected) / torch.linalg.vector_norm(expected)
        assert error < (5e-3 if precision == "fp16" else 1e-5)
        del other


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["3xtf32", "fp16", "fp32"])
def test_graphs_that_are_replayed_in_another_order_and_at_once(gpu: Any, precision: str) -> None:
    """Slices of a long k count in memory of each graph's own."""
    given = [drawn(64, 8000, device="cuda", dtype=torch.complex64) * (i + 1) for i in range(2)]
    stream, graphs, found = torch.cuda.Stream(), [], []
    gemm(given[0], given[0], op_b="C", precision=precision)
    for x in given:
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1], stream=stream):
            found.append(gemm(x, x, op_b="C", precision=precision))
    streams = [torch.cuda.Stream() for _ in graphs]
    for order in ((1,), (0, 1), (1, 0), (0, 1, 0, 1)):
        torch.cuda.synchronize()
        for which in order:
            with torch.cuda.stream(streams[which]):
                graphs[which].replay()
    torch.cuda.synchronize()
    for x, result in zip(given, found, strict=True):
        wide = x.to(torch.complex128)
        expected = wide @ wide.mH
        error = torch.linalg.vector_norm(result - expected) / torch.linalg.vector_norm(expected)
        assert error < (5e-3 if precision == "fp16" else 1e-5)
