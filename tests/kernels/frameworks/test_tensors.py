"""Tensors of torch go in and come out, on their device, without copies."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import (
    apply_gate,
    beam_power,
    channelise,
    dft,
    gemm,
    herk,
    log_softmax,
    logsumexp,
    softmax,
)

torch = pytest.importorskip("torch", reason="torch is not installed")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name == "cuda":
        request.getfixturevalue("gpu")
        if not torch.cuda.is_available():
            pytest.skip("torch is installed without CUDA")
    return name


def drawn(*shape: int, device: str, dtype: Any = None) -> Any:
    made = torch.Generator().manual_seed(7)
    x = torch.randn(*shape, dtype=torch.complex128, generator=made)
    return x.to(dtype or torch.complex64).to(device)


def close(found: Any, expected: Any, rtol: float = 3e-6) -> None:
    assert found.device == expected.device
    assert found.shape == expected.shape
    error = torch.linalg.vector_norm(found.to(expected.dtype) - expected)
    assert error <= rtol * torch.linalg.vector_norm(expected)


def test_each_call_gives_what_torch_gives(device: str) -> None:
    a, b = drawn(2, 5, 7, device=device), drawn(7, 6, device=device)
    real = a.real.contiguous()
    close(gemm(a, b), a @ b)
    close(herk(a), a @ a.mH)
    close(dft(a), torch.fft.fft(a))
    close(dft(a, 1, inverse=True), torch.fft.ifft(a, dim=1))
    for function, expected in ((softmax, torch.softmax), (log_softmax, torch.log_softmax)):
        close(function(real), expected(real, -1))
        close(function(real, 0), expected(real, 0))
    close(logsumexp(real, 1), torch.logsumexp(real, 1))
    close(beam_power(a, b, integrate=2), ((a @ b).abs() ** 2).reshape(2, 5, 3, 2).sum(-1))
    close(channelise(drawn(64, device=device), 8, 4, precision="fp64"),
          torch.as_tensor(channelise(drawn(64, device="cpu").numpy(), 8, 4, precision="fp64"),
                          device=device))  # fmt: skip


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_results_have_the_type_of_the_tensors(device: str, name: str) -> None:
    x = drawn(8, 8, device=device, dtype=getattr(torch, name))
    for found in (gemm(x, x), herk(x), dft(x)):
        assert found.dtype == x.dtype
        assert found.device == x.device


def test_strides_conjugates_and_negatives_are_read_as_they_are(device: str) -> None:
    x = drawn(9, 11, device=device)
    for view in (x.T, x[::2, 1:8], x.mH, x.conj()):
        close(gemm(view, view.T.contiguous()), view @ view.T)
        close(gemm(view, view, op_b="T"), view @ view.mT)
        close(gemm(view, view, op_a="C", alpha=2j), 2j * (view.mH @ view))
        close(softmax(view, power=True), torch.softmax(view.abs() ** 2, -1), 1e-5)
    negative = x.conj().imag
    assert negative.is_neg()
    close(gemm(negative, negative.T.contiguous()), (negative @ negative.T).to(x.dtype))


@pytest.mark.parametrize("how", [{}, {"inverse": True}, {"n": 7, "norm": "forward"}], ids=str)
def test_transforms_of_conjugates_and_negatives(device: str, how: dict[str, Any]) -> None:
    x = drawn(9, 11, device=device)
    calls = {False: torch.fft.fft, True: torch.fft.ifft}
    theirs = partial(calls[how.get("inverse", False)], n=how.get("n"), norm=how.get("norm"))
    for view in (x.conj(), x.conj().T, x.conj().imag, torch._neg_view(x.conj())):
        memory = view.data_ptr()
        found = dft(view, **how)
        close(found, theirs(view).to(found.dtype))
        assert (view.data_ptr(), found.is_conj(), found.is_neg()) == (memory, False, False)
    expected, goal = torch.fft.fft(x.conj()), torch.empty_like(x)
    assert dft(x.conj(), out=goal) is goal
    close(goal, expected)
    close(dft(x.conj(), out=x), expected)  # over its own memory
    close(x, expected)
    with pytest.raises(ValueError, match="norm"):
        dft(x.conj(), norm="middle")


def test_gates_change_the_memory_of_conjugates_and_negatives(device: str) -> None:
    gate, flip = drawn(2, 2, device=device), [[0, 1j], [1, 0]]
    for view in (torch.Tensor.conj, torch._neg_view, lambda x: torch._neg_view(x.conj())):
        for matrix in (gate, gate.conj(), gate.numpy(force=True), flip):
            memory = drawn(8, device=device)
            state, expected = view(memory), view(memory).resolve_conj().resolve_neg()
            assert apply_gate(state, matrix, [1]) is state
            close(state.resolve_conj().resolve_neg(), apply_gate(expected, matrix, [1]))


def test_out_is_written_in_place(device: str) -> None:
    x = drawn(6, 6, device=device)
    store = torch.full((6, 12), float("nan"), dtype=torch.complex64, device=device)
    out = store[:, ::2]
    assert gemm(x, x, out=out) is out
    close(out, x @ x)
    assert store[:, 1::2].isnan().all()
    assert dft(x, out=x) is x
    with pytest.raises(ValueError, match="out must not be a conjugate or negative view"):
        gemm(x, x, out=out.conj())


def test_gates_act_on_a_tensor(device: str) -> None:
    state = torch.zeros(8, dtype=torch.complex64, device=device)
    state[0] = 1
    flip = torch.tensor([[0, 1], [1, 0]], dtype=torch.complex64, device=device)
    assert apply_gate(state, flip, [1]) is state
    assert state[2] == 1
    apply_gate(state, flip.cpu().numpy(), [0], controls=[1])
    assert state[3] == 1


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_half_types(device: str) -> None:
    x = drawn(8, 8, device=device, dtype=torch.complex32)
    wide = x.to(torch.complex64)
    close(gemm(x, x, precision="fp16"), wide @ wide, 1e-3)
    half = gemm(x, x, precision="fp16", output="complex-half")
    assert half.dtype == torch.complex32
    close(half.to(torch.complex64), wide @ wide, 2e-3)
    close(dft(x), torch.fft.fft(wide))
    bits = drawn(4, 9, device=device).real.to(torch.bfloat16)
    close(softmax(bits, output="fp32"), torch.softmax(bits.float(), -1), 1e-5)
    assert softmax(bits).dtype == torch.bfloat16
    assert logsumexp(bits.half(), 0).dtype == torch.float16
    assert gemm(x, x).dtype == torch.complex32
    assert gemm(x, x, out=torch.empty_like(wide)).dtype == torch.complex64
    found = softmax(bits, precision="bf16", output="bf16")
    assert found.dtype == torch.bfloat16
    close(found.float(), torch.softmax(bits.float(), -1), 1e-2)
    close(gemm(bits, bits.T.contiguous()), (bits.float() @ bits.float().T).to(torch.complex64))


def test_gradients_that_nothing_computes_are_refused(device: str) -> None:
    x = drawn(4, 4, device=device).requires_grad_()
    out = torch.empty_like(x.detach())
    for call in (lambda: herk(x), lambda: gemm(x, x, out=out), lambda: dft(x, out=out)):
        with pytest.raises(TypeError, match="requires a gradient"):
            call()
        with torch.no_grad():
            call()


def test_other_devices_are_refused() -> None:
    x = torch.empty(4, 4, dtype=torch.complex64, device="meta")
    with pytest.raises(TypeError, match="must be on a CPU or a CUDA GPU, got meta"):
        gemm(x, x)
    with pytest.raises(TypeError, match="tensors must be on one device"):
        gemm(x, torch.ones(4, 4))


def test_arrays_may_stand_beside_tensors(device: str) -> None:
    x = drawn(4, 4, device=device)
    beside: Any = np.ones((4, 4), np.complex64)
    if device == "cuda":
        import cupy

        beside = cupy.asarray(beside)
    close(gemm(x, beside), x @ torch.ones(4, 4, dtype=torch.complex64, device=device))


@pytest.mark.gpu
def test_calls_run_on_torchs_stream(gpu: Any) -> None:
    """A producer that is still running on a stream of torch's is waited for."""
    x = drawn(512, 512, device="cuda")
    expected = x @ x
    stream = torch.cuda.Stream()
    for _ in range(3):
        y = torch.zeros_like(x)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(50_000_000)
            y.copy_(x)
            found = gemm(y, y, precision="3xtf32")
        stream.synchronize()
        close(found, expected, 1e-5)


@pytest.mark.gpu
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


@pytest.mark.gpu
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


@pytest.mark.gpu
def test_a_result_that_overlaps_an_operand(gpu: Any) -> None:
    for _ in range(3):
        x = drawn(64, 64, device="cuda")
        expected = x @ x
        gemm(x, x, out=torch.empty_like(x))
        close(gemm(x, x, out=x), expected, 1e-5)


@pytest.mark.gpu
def test_no_elements(gpu: Any) -> None:
    x = torch.zeros(0, 5, dtype=torch.complex64, device="cuda")
    assert gemm(x, x.mT).shape == (0, 0)
    assert (gemm(x.mT, x) == 0).all()
