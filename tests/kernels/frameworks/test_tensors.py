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
    contract,
    dft,
    gemm,
    herk,
    log_softmax,
    logsumexp,
    softmax,
    spectrum,
)

from tests.kernels.frameworks.copies import copied_conjugate
from tests.kernels.frameworks.tensors import close, drawn

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


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_filter_banks_and_spectra_do_not_copy_conjugates(
    device: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = drawn(2, 1200, device=device, dtype=torch.complex64)
    calls = (
        partial(channelise, channels=8, taps=4), partial(spectrum, length=16),
        partial(spectrum, length=37, average="all", detrend="linear"),
        partial(channelise, channels=64, oversampling="4/3"),
    )  # fmt: skip
    for x in (whole, whole[:, ::2], whole.to(torch.complex32)):
        conjugates = x.to(torch.complex64).conj().resolve_conj()
        copied = [call(conjugates, precision=precision) for call in calls]
        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, "resolve_conj", copied_conjugate)
            found = [call(x.conj(), precision=precision) for call in calls]
        for one, other in zip(found, copied, strict=True):
            assert not one.is_conj()
            close(one, other)


def test_a_softmax_closes_the_gaps_of_a_negative_view_by_the_copy_that_negates_it(
    device: str,
) -> None:
    """No negative view that torch's public functions make has neighbours side by side."""
    x = drawn(9, 64, device=device)
    for view in (x.conj().imag, x.mH.imag, x.conj()[..., 3].imag, x.mH.imag[::2]):
        assert view.is_neg()
        assert all(stride % 2 == 0 for stride in view.stride())
        for function in (softmax, log_softmax, logsumexp):
            close(function(view), function(view.resolve_neg()))


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
    empty = gemm(x[:0].mT.mT, x)
    assert (empty.dtype, empty.shape) == (torch.complex32, (0, 8))
    assert gemm(x, x[:, :0]).shape == (8, 0)
    assert gemm(x, x, out=torch.empty_like(wide)).dtype == torch.complex64
    close(softmax(torch._neg_view(bits), output="fp32"), torch.softmax(-bits.float(), -1), 1e-5)
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
    with pytest.raises(TypeError, match="a must be on a CPU or a CUDA GPU, got meta"):
        gemm(x, x)
    with pytest.raises(TypeError, match="must be on one device, got a on meta, b on cpu"):
        gemm(x, torch.ones(4, 4))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_that_have_no_array_are_refused() -> None:
    x = torch.ones(4, 4)
    with pytest.raises(TypeError, match=r"b must be strided and of .*, got torch.sparse_coo of"):
        gemm(x, x.to_sparse())
    with pytest.raises(TypeError, match=r"x must be strided and of .*, got nested tensors of"):
        softmax(torch.nested.nested_tensor([x[0], x[1, :2]]))
    with pytest.raises(TypeError, match=r"bfloat16, torch\.complex32, got .*float8_e4m3fn"):
        softmax(x.to(torch.float8_e4m3fn))
    freed = torch.ones(4, 4)
    freed.untyped_storage().resize_(0)
    with pytest.raises(TypeError, match="x has no memory for its 16 numbers"):
        softmax(freed)


def test_arrays_may_stand_beside_tensors(device: str) -> None:
    x = drawn(4, 4, device=device)
    beside: Any = np.ones((4, 4), np.complex64)
    if device == "cuda":
        import cupy

        beside = cupy.asarray(beside)
    close(gemm(x, beside), x @ torch.ones(4, 4, dtype=torch.complex64, device=device))
    scale = np.arange(4, dtype=np.float32)[::-1]
    found = contract("ij,jk->ik", x, x, scale=scale, bias=scale, conj=True)
    factors = torch.tensor([3.0, 2.0, 1.0, 0.0], device=device)
    close(found, (x @ x * factors + factors).conj())
    with pytest.raises(TypeError, match="scale is a tensor of torch, but the operands are arrays"):
        contract("ij,jk->ik", beside, beside, scale=x)
