"""Arrays on a GPU that is not the current one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import argand
import numpy as np
import pytest

from tests.kernels.frameworks.test_every_call import (
    CALLS,
    GATE,
    assert_close,
    drawn,
    in_place,
    on_host,
    prepared,
)

pytestmark = pytest.mark.gpu
PLANS: dict[str, Callable[[Any], tuple[Any, tuple[Any, ...]]]] = {
    "gemm": lambda x: (argand.GemmPlan(x, x, op_b="C"), (x, x)),
    "dft": lambda x: (argand.DftPlan(x), (x,)),
    "softmax": lambda x: (argand.SoftmaxPlan(x, power=True), (x,)),
}


@pytest.fixture
def second(cp: Any) -> None:
    """Skips where there is one GPU; the first is the current one."""
    count = cp.cuda.runtime.getDeviceCount()
    if count < 2:
        pytest.skip(f"two GPUs are needed, there are {count}")
    for index in (1, 0):  # torch does not go back to a GPU that nothing has used
        cp.cuda.Device(index).use()
        cp.zeros(1)


@pytest.fixture(params=["torch", "cupy", "jax"])
def there(request: pytest.FixtureRequest, cp: Any, second: None) -> Callable[[Any], Any]:
    """The function that makes an array of a library on the second GPU."""
    library = pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    if request.param == "torch":
        return lambda x: library.from_numpy(np.array(x)).to("cuda:1")
    if request.param == "jax":
        return lambda x: library.device_put(np.asarray(x), library.devices("gpu")[1])

    def made(x: Any) -> Any:
        with cp.cuda.Device(1):
            return cp.asarray(x)

    return made


def index_of(x: Any) -> int:
    device = x.device
    return int(next(getattr(device, name) for name in ("index", "id") if hasattr(device, name)))


def host(cp: Any, x: Any) -> Any:
    return x.get() if isinstance(x, cp.ndarray) else on_host(x)


@pytest.mark.parametrize("name", CALLS)
def test_calls_compute_where_their_arrays_are(
    name: str, there: Callable[[Any], Any], cp: Any
) -> None:
    call, shape = CALLS[name]
    x = drawn(shape)
    expected = call(x)
    for _ in range(3):  # the last are repeated from what was kept
        found = call(there(x))
        assert index_of(found) == 1
        assert_close(host(cp, found), expected)
    if not type(found).__module__.startswith("jax"):  # XLA leaves its GPU the current one
        assert cp.cuda.runtime.getDevice() == 0


@pytest.mark.parametrize("name", CALLS)
def test_calls_on_two_gpus_in_turn(name: str, second: None) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    call, shape = CALLS[name]
    x = torch.from_numpy(drawn(shape))
    expected = call(x.numpy())
    for index in (0, 1, 0, 1, 1, 0):
        found = call(x.to(f"cuda:{index}"))
        assert found.device.index == index
        assert_close(on_host(found), expected)
    assert torch.cuda.current_device() == 0


@pytest.mark.parametrize("name", PLANS)
def test_plans_of_tensors_there(name: str, second: None, cp: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.from_numpy(drawn((8, 64))).to("cuda:1")
    plan, given = PLANS[name](x)
    expected = plan(*given)
    out = torch.empty_like(expected)
    for current in (0, 1, 0):
        with torch.cuda.device(current):
            assert plan(*given, out=out) is out
            assert torch.equal(out, expected)
            assert torch.equal(plan(*given), expected)
            out.zero_()
    with pytest.raises(ValueError, match=r"cuda:1|GPU|device"):
        plan(*(y.to("cuda:0") for y in given))
    assert cp.cuda.runtime.getDevice() == 0


def test_plans_of_cupys_arrays_need_their_gpu_as_the_current_one(second: None, cp: Any) -> None:
    with cp.cuda.Device(1):
        x = cp.asarray(drawn((8, 64)))
        plan = argand.DftPlan(x)
        expected = plan(x)
    for call in (lambda: plan(x), lambda: argand.DftPlan(x)):
        with pytest.raises(ValueError, match="current"):
            call()
    assert_close(expected.get(), np.fft.fft(x.get()))


@pytest.mark.parametrize("call", [in_place, prepared])
def test_circuits_change_a_state_there(
    call: Callable[[Any], Any], there: Callable[[Any], Any], cp: Any
) -> None:
    expected, state = drawn((8,)), there(drawn((8,)))
    if type(state).__module__.startswith("jax"):
        pytest.skip("arrays of JAX do not change")
    call(expected)
    for _ in range(2):
        state = there(drawn((8,)))
        call(state)
        assert_close(host(cp, state), expected)


def test_a_prepared_circuit_is_repeated_there(second: None) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    expected, state = drawn((8,)), torch.from_numpy(drawn((8,)))
    in_place(expected)
    made = argand.PreparedCircuit(argand.plan_circuit(3, [GATE]), state.to("cuda:1"))
    for _ in range(3):
        other = state.to("cuda:1")
        made(other)
        assert_close(on_host(other), expected)


@pytest.mark.parametrize("matrix", ["host", "device"])
def test_gates_there(matrix: str, there: Callable[[Any], Any], cp: Any) -> None:
    u, expected = drawn((2, 2)), drawn((8,))
    argand.apply_gate(expected, u, [1])
    for _ in range(3):
        found = argand.apply_gate(there(drawn((8,))), u if matrix == "host" else there(u), [1])
        assert index_of(found) == 1
        assert_close(host(cp, found), expected)


def test_a_stream_and_a_graph_of_torchs_there(second: None) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.from_numpy(drawn((64, 64))).to("cuda:1")
    y = torch.zeros_like(x)
    expected = argand.gemm(x, x, precision="3xtf32")
    stream = torch.cuda.Stream(device=1)
    torch.cuda.synchronize(1)
    for _ in range(3):
        with torch.cuda.stream(stream):
            y.zero_()
            torch.cuda._sleep(20_000_000)
            y.copy_(x)
            found = argand.gemm(y, y, precision="3xtf32")
        stream.synchronize()
        assert torch.equal(found, expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(1), torch.cuda.graph(graph):
        found = argand.softmax(argand.gemm(y, y, precision="3xtf32").abs())
    y.mul_(2)
    graph.replay()
    torch.testing.assert_close(found, torch.softmax((4 * expected).abs(), -1))


def test_a_gradient_there(second: None) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.from_numpy(drawn((16, 16))).to("cuda:1").requires_grad_()
    argand.gemm(x, x.mH).abs().sum().backward()
    found, x.grad = x.grad, None
    (x @ x.mH).abs().sum().backward()
    assert found.device.index == 1
    torch.testing.assert_close(found, x.grad, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_arrays_on_two_gpus_are_refused(library: str, second: None, cp: Any) -> None:
    x = drawn((4, 4))
    if library == "torch":
        torch = pytest.importorskip("torch", reason="torch is not installed")
        here, other = (torch.from_numpy(x).to(f"cuda:{index}") for index in range(2))
    else:
        here = cp.asarray(x)
        with cp.cuda.Device(1):
            other = cp.asarray(x)
    for call in (
        lambda: argand.gemm(here, other),
        lambda: argand.gemm(here, here, out=other),
        lambda: argand.contract("ij,jk->ik", here, other),
        lambda: argand.solve(here, other),
        lambda: argand.dft(here, out=other),
        lambda: argand.softmax(here.real, out=other.real),
    ):
        with pytest.raises((ValueError, TypeError), match=r"one GPU|same GPU|GPU|cuda|device"):
            call()


def test_a_circuit_in_a_capture_there_is_refused(second: None, cp: Any) -> None:
    """The capture goes on; the current stream of the first GPU is not captured."""
    with cp.cuda.Device(1), cp.cuda.Stream(non_blocking=True) as stream:
        state = cp.zeros(64, np.complex64)
        stream.synchronize()
        stream.begin_capture()
        with (
            cp.cuda.Device(0),
            pytest.raises(RuntimeError, match=r"make an argand\.PreparedCircuit"),
        ):
            argand.run_circuit(state, [GATE])
        stream.end_capture()
    assert not state.get().any()
