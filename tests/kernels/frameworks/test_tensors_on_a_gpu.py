"""Calls on CUDA tensors: their stream, repeated calls, memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from argand import GemmPlan, apply_gate, dft, gemm, pack, pairs, softmax, to_pairs

from tests.kernels.frameworks.tensors import close, drawn

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.gpu
THREADED: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: gemm(x, x, op_b="C", precision="3xfp16"),
    "exact product": lambda x: gemm(x, x, op_b="C", precision="7xint8"),
    "transform": lambda x: dft(x, precision="3xfp16"),
    "rows": lambda x: softmax(x.real.contiguous()),
}


@contextmanager
def late_copy(x: Any, stream: Any) -> Iterator[Any]:
    """Enter a stream that copies x to the tensor that is yielded, after some time."""
    y = torch.zeros_like(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        y.copy_(x)
        yield y


@pytest.mark.parametrize("kind", ["own", "legacy", "per-thread"])
def test_calls_run_on_torchs_stream(gpu: Any, kind: str) -> None:
    """A producer that is still running on a stream of torch's is waited for."""
    x = drawn(512, 512, device="cuda")
    expected = x @ x
    stream = {
        "own": torch.cuda.Stream, "legacy": torch.cuda.default_stream,
        "per-thread": lambda: torch.cuda.ExternalStream(2),
    }[kind]()  # fmt: skip
    for _ in range(3):
        with late_copy(x, stream) as y:
            found = gemm(y, y, precision="3xtf32")
        stream.synchronize()
        close(found, expected, 1e-5)


@pytest.mark.parametrize("make", ["pairs", "to_pairs", "pack"])
def test_pairs_and_packed_operands_alone_wait_for_torchs_stream(gpu: Any, make: str) -> None:
    """Calls on them run on CuPy's stream, which waits for that on which they were made."""
    import cupy

    x = drawn(512, 512, device="cuda")
    made = {
        "pairs": lambda y: pairs(torch.view_as_real(y)),
        "to_pairs": lambda y: to_pairs(y, "fp16"),
        "pack": lambda y: pack(y, "3xtf32"),
    }[make]
    expected = cupy.from_dlpack(x @ x)
    other = cupy.from_dlpack(x)
    stream = torch.cuda.Stream()
    for _ in range(3):
        with late_copy(x, stream) as y:
            given = made(y)
        found = gemm(given, other, precision="3xtf32")
        cupy.testing.assert_allclose(found, expected, rtol=0, atol=0.1)


def test_repeated_calls_on_tensors_read_the_data_of_each(gpu: Any) -> None:
    """They come from the call cache by their addresses, in the order of torch's stream."""
    a, b = drawn(3, 70, 60, device="cuda"), drawn(60, 65, device="cuda")
    real = a.real.contiguous()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    for current in (torch.cuda.current_stream(), stream, torch.cuda.current_stream()):
        with torch.cuda.stream(current):
            for turn in range(4):
                x = (turn + 1) * a[turn % 3]
                close(gemm(x, b, precision="3xtf32"), x @ b, 1e-5)
                close(gemm(x.conj(), b, precision="3xtf32"), x.conj() @ b, 1e-5)
                held = torch.full((70, 65), float("nan"), dtype=x.dtype, device="cuda")
                assert gemm(x, b, out=held) is held
                close(held, x @ b, 1e-5)
                close(dft(x), torch.fft.fft(x), 1e-5)
                close(softmax(real[turn % 3]), torch.softmax(real[turn % 3], -1), 1e-5)
                assert softmax(real[0].half()).dtype == torch.float16
        stream.synchronize()


def test_an_address_that_comes_again_with_another_tensor(gpu: Any) -> None:
    """Repeated calls know addresses; a tensor there that is another one is looked at."""
    import argand.torch_ops  # noqa: F401  for vmap

    a, b = drawn(64, 64, device="cuda"), drawn(64, 64, device="cuda", seed=8)
    out = torch.empty_like(a)
    leaf = torch.nn.Parameter(a)
    for x in (a, a.T, a.conj(), torch._neg_view(a), a[:32], a, b):
        for _ in range(3):
            close(gemm(x, b, precision="3xtf32"), x.resolve_conj().resolve_neg() @ b, 1e-5)
            if x.shape == out.shape:
                assert gemm(x, b, precision="3xtf32", out=out) is out
                close(out, x.resolve_conj().resolve_neg() @ b, 1e-5)
    for _ in range(3):
        with torch.no_grad():
            assert not gemm(leaf, b, precision="3xtf32").requires_grad
        with torch.inference_mode():
            assert gemm(leaf, b, precision="3xtf32").is_inference()
        assert gemm(leaf, b, precision="3xtf32").requires_grad
        assert gemm(torch.view_as_real(a)[..., 0], b, precision="3xtf32").shape == (64, 64)
        close(torch.func.vmap(lambda y: gemm(y, b, precision="3xtf32"))(a[None])[0], a @ b, 1e-5)
    for _ in range(3):
        with pytest.raises(ValueError, match="inner dimensions differ"):
            gemm(a.view(128, 32), b, precision="3xtf32")


def test_tensors_of_the_cpu_after_those_of_a_gpu(gpu: Any) -> None:
    """Tensors of the CPU with the forms of those whose calls are kept do not take these calls."""
    x = drawn(16, 16)
    plan = GemmPlan(x.cuda(), x.cuda())
    for _ in range(3):
        for call in (lambda x: gemm(x, x), dft, lambda x: softmax(x.real.contiguous())):
            expected, found = call(x.cuda()), call(x)
            assert found.device == x.device
            close(found, expected.cpu(), 1e-5)
        with pytest.raises((TypeError, ValueError)):
            gemm(x.cuda(), x)
        with pytest.raises((TypeError, ValueError)):
            plan(x, x)


def test_tensors_without_memory_are_refused(gpu: Any) -> None:
    x = drawn(16, 16, device="cuda")
    gemm(x, x)
    with pytest.raises(TypeError, match="b must be strided"):
        gemm(x, x.to_sparse())
    plan = GemmPlan(x, x)
    with pytest.raises(TypeError, match="a must be strided"):
        plan(x.to_sparse(), x)
    freed = x.clone()
    gate = torch.eye(4, dtype=x.dtype, device="cuda")
    state = freed.view(-1)
    calls = [
        lambda: gemm(x, freed),
        lambda: plan(freed, x),
        lambda: apply_gate(state, gate, (0, 3)),
    ]
    for call in calls * 3:
        call()
    freed.untyped_storage().resize_(0)
    for call in calls * 2:
        with pytest.raises(TypeError, match="has no memory for its 256 numbers"):
            call()


def test_ten_thousand_calls_take_no_memory(gpu: Any) -> None:
    x = drawn(64, 64, device="cuda")
    real = x.real.contiguous()
    calls = (lambda: gemm(x, x), lambda: dft(x), lambda: softmax(real))
    for call in calls:
        call()
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        for number in range(10_000):
            call()
            if number % 1000 == 0:
                torch.cuda.synchronize()
        assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("name", THREADED)
def test_threads_on_streams_of_torch_get_the_same_bits(gpu: Any, name: str) -> None:
    call = THREADED[name]
    given = [drawn(40 + number, 64, device="cuda", seed=number) for number in range(8)]
    alone = [call(x) for x in given]
    torch.cuda.synchronize()

    def worker(first: int) -> bool:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            order = [*range(first, 8), *range(first)] * 20
            results = [(place, call(given[place])) for place in order]
            stream.synchronize()
            return all(torch.equal(found, alone[place]) for place, found in results)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(worker, range(8)))


def test_threads_call_one_plan_on_streams_of_torch(gpu: Any) -> None:
    x, y = (drawn(64, 3000, device="cuda", seed=seed) for seed in range(2))
    plan = GemmPlan(x, y, op_b="C", precision="3xfp16")  # it takes memory
    alone = plan(x, y)
    torch.cuda.synchronize()

    def worker(_: int) -> bool:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            results = [plan(x, y) for _ in range(100)]
            stream.synchronize()
            return all(torch.equal(found, alone) for found in results)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(worker, range(8)))


@pytest.mark.parametrize("length", [1000, 1009])
def test_transforms_in_graphs_of_torch(gpu: Any, length: int) -> None:
    """Two graphs run beside each other, and beside calls of other lengths; 1009 takes memory."""
    given = [drawn(40, length, device="cuda", seed=seed) for seed in range(2)]
    expected = [dft(x, precision="fp32") for x in given]
    stream, graphs, found = torch.cuda.Stream(), [], []
    for x in given:
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1], stream=stream):
            found.append(dft(x, precision="fp32"))
    streams = [torch.cuda.Stream() for _ in graphs]
    for turn in range(20):
        for result in found:
            result.zero_()
        torch.cuda.synchronize()
        for graph, replayed in zip(graphs, streams, strict=True):
            with torch.cuda.stream(replayed):
                graph.replay()
        dft(drawn(40, 900 + turn, device="cuda"), precision="fp32")
        torch.cuda.synchronize()
        assert all(map(torch.equal, found, expected))


def test_a_result_that_overlaps_an_operand(gpu: Any) -> None:
    for _ in range(3):
        x = drawn(64, 64, device="cuda")
        expected = x @ x
        gemm(x, x, out=torch.empty_like(x))
        close(gemm(x, x, out=x), expected, 1e-5)


def test_no_elements(gpu: Any) -> None:
    x = torch.zeros(0, 5, dtype=torch.complex64, device="cuda")
    assert gemm(x, x.mT).shape == (0, 0)
    assert (gemm(x.mT, x) == 0).all()
