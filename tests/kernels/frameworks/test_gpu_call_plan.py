"""Plans as objects on a GPU: the bits of the calls, other arrays, captured graphs, tuned plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import DftPlan, GemmPlan, SoftmaxPlan, dft, gemm, logsumexp, pack, softmax, to_pairs
from argand.frameworks.call_plan import CallPlan

from tests.normal import normal

pytestmark = pytest.mark.gpu


Case = tuple[tuple[tuple[int, ...], ...], Callable[..., CallPlan], Callable[..., Any]]


def _product(size: int, precision: str) -> Case:
    given: dict[str, Any] = {"precision": precision, "op_b": "C"}
    return (
        ((size, size), (size, size)),
        lambda a, b: GemmPlan(a, b, **given),
        lambda a, b: gemm(a, b, **given),
    )


def _transform(length: int, rows: int = 2, **given: Any) -> Case:
    return ((rows, length),), lambda x: DftPlan(x, **given), lambda x: dft(x, **given)


CASES: dict[str, Case] = {
    "one kernel": _product(40, "3xtf32"),
    "packed before": _product(512, "3xfp16"),
    "by cuBLAS": _product(40, "fp32"),
    "exact integers": _product(64, "7xint8"),
    "transforms": _transform(1009, 2048),
    "three kernels": _transform(1 << 18),
    "by cuFFT": _transform(48, precision="fp32"),
    "by cuFFT, inverse": _transform(48, precision="fp32", inverse=True),
    "softmax": (
        ((30, 100),),
        lambda x: SoftmaxPlan(x, power=True),
        lambda x: softmax(x, power=True),
    ),
    "logsumexp": (
        ((30, 100),),
        lambda x: SoftmaxPlan(x, function="logsumexp", power=True),
        lambda x: logsumexp(x, power=True),
    ),
}


def planned(
    cp: Any, rng: np.random.Generator, name: str
) -> tuple[Any, list[tuple[Any, ...]], list[Any]]:
    """A plan, operands of three calls, and their results."""
    shapes, make, call = CASES[name]
    given = [
        tuple(cp.asarray(normal(rng, *shape)) for shape in shapes) for _ in range(3)
    ]  # fmt: skip
    return make(*given[0]), given, [call(*arrays) for arrays in given]


@pytest.mark.parametrize("name", CASES)
def test_a_plan_computes_the_bits_of_the_call(cp: Any, rng: Any, name: str) -> None:
    plan, given, expected = planned(cp, rng, name)
    out = cp.empty_like(expected[0])
    for arrays, result in [*zip(given, expected, strict=True)] * 2:
        assert bool((plan(*arrays) == result).all())
        for _ in range(2):
            out.fill(7)
            assert plan(*arrays, out=out) is out
            assert bool((out == result).all())


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("by cuFFT")])
def test_a_graph_replays_a_plan(cp: Any, rng: Any, name: str) -> None:
    """The plan's memory is its own: what is allocated after the capture is not written."""
    plan, given, expected = planned(cp, rng, name)
    held = tuple(cp.empty_like(x) for x in given[0])
    out = cp.empty_like(expected[0])
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        plan(*held, out=out)
        stream.begin_capture()
        plan(*held, out=out)
        graph = stream.end_capture()
        others = [cp.full(1 << 16, 3, cp.uint8) for _ in range(64)]
        for arrays, result in zip(given, expected, strict=True):
            for to, x in zip(held, arrays, strict=True):
                to[...] = x
            graph.launch(stream=stream)
            assert bool((out == result).all())
        assert all(bool((x == 3).all()) for x in others)


def test_other_arrays_are_refused(cp: Any, rng: Any) -> None:
    a, b = (cp.asarray(normal(rng, 40, 40)) for _ in range(2))
    plan, out = GemmPlan(a, b, precision="tf32"), cp.empty_like(a)
    plan(a, b, out=out)
    memory = cp.empty(1601, cp.complex64)
    wrong: list[tuple[str, tuple[Any, ...], Any]] = [
        ("a must have the planned", (a.T, b), out),
        ("b must have the planned", (a, memory[1:].reshape(40, 40)), out),
        ("out must have the planned", (a, b), cp.empty((40, 41), cp.complex64)[:, :40]),
        ("out must not overlap", (a, b), b),
        ("a must be complex64", (a.astype("complex128"), b), out),
        ("a must be complex64", (a[:39], b), None),
        ("a must have the planned|must be on", (a.get(), b), out),
    ]
    for message, operands, goal in wrong:
        with pytest.raises(ValueError, match=message):
            plan(*operands, out=goal)


def test_what_a_plan_remembers_goes_with_the_arrays(cp: Any, rng: Any) -> None:
    """The identity of an array that died may be that of another one."""
    a, b = (cp.asarray(normal(rng, 40, 40)) for _ in range(2))
    plan = GemmPlan(a, b, precision="tf32")
    for number in range(100):
        x, out = cp.asarray(normal(rng, 40, 40)), cp.empty_like(a)
        expected = gemm(x, b, precision="tf32")
        for _ in range(2):
            assert bool((plan(x, b) == expected).all())
            assert bool((plan(x, b, out=out) == expected).all())
        assert len(plan._on_gpu._known) == 2, number
        del x, out
        assert not plan._on_gpu._known


def test_arrays_that_are_copied_have_no_plan(cp: Any, rng: Any) -> None:
    x = cp.asarray(normal(rng, 24, 48))
    for make in (
        lambda: GemmPlan(x.astype("complex128"), x.T, precision="tf32"),
        lambda: GemmPlan(x[:0], x.T, precision="tf32"),
    ):
        with pytest.raises(ValueError, match="a plan needs operands that kernels read in place"):
            make()


STAGED: dict[str, Case] = {
    "columns": _transform(24, 6, axis=0),
    "the middle axis": (
        ((3, 100, 5),),
        lambda x: DftPlan(x, 1, inverse=True, norm="ortho"),
        lambda x: dft(x, 1, inverse=True, norm="ortho"),
    ),
    "padded": _transform(40, 4, n=48),
    "cut columns": _transform(24, 60, axis=0, n=48),
    "softmax of columns": (
        ((30, 7, 20),),
        lambda x: SoftmaxPlan(x, 0, power=True),
        lambda x: softmax(x, 0, power=True),
    ),
    "sums of columns": (
        ((30, 7, 20),),
        lambda x: SoftmaxPlan(x, -2, function="logsumexp", power=True),
        lambda x: logsumexp(x, -2, power=True),
    ),
}
"""Plans that copy their array into rows."""


@pytest.mark.parametrize("name", STAGED)
def test_arrays_are_staged_as_rows(
    cp: Any, rng: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Plain calls, into ``out``, of views, on another stream, and in a graph that is replayed."""
    monkeypatch.setitem(CASES, name, STAGED[name])
    plan, given, expected = planned(cp, rng, name)
    stream = cp.cuda.Stream(non_blocking=True)
    assert int(plan.describe().rpartition("workspace: ")[2].split()[0]) > given[0][0].nbytes
    for on in (cp.cuda.Stream.null, stream):
        cp.cuda.Device().synchronize()
        with on:
            for (x,), result in zip(given, expected, strict=True):
                out, strided = cp.full_like(result, 7), cp.asfortranarray(x)
                assert plan(x, out=out) is out
                for found in (out, plan(x), plan(strided)):
                    assert found.shape == result.shape
                    assert bool((found == result).all())
    with stream:
        held, out = cp.empty_like(given[0][0]), cp.empty_like(expected[0])
        stream.begin_capture()
        plan(held, out=out)
        graph = stream.end_capture()
        for (x,), result in zip(given, expected, strict=True):
            held[...] = x
            graph.launch(stream=stream)
            assert bool((out == result).all())


def test_a_staged_plan_refuses_other_arrays(cp: Any, rng: Any) -> None:
    x = cp.asarray(normal(rng, 24, 48))
    plan = DftPlan(x, 0)
    for wrong, out, message in (
        (x.T, None, "x must be complex64"),
        (x.get(), None, "x must be on"),
        (x, cp.empty((24, 47), cp.complex64), "out must have shape"),
        (x, cp.empty((24, 48), cp.complex128), "out must"),
        (x, np.empty((24, 48), np.complex64), "out must be on"),
    ):
        with pytest.raises(ValueError, match=message):
            plan(wrong, out=out)
    with pytest.raises(ValueError, match="axis"):
        DftPlan(x, 2)
    assert bool((DftPlan(x, 1)(x) == dft(x, 1)).all())


def test_packed_operands_and_pairs_have_plans(cp: Any, rng: Any) -> None:
    a, b = (cp.asarray(normal(rng, *shape)) for shape in ((64, 256), (256, 512)))
    packed, halves = pack(a, "fp16"), [to_pairs(x, "fp16") for x in (a, b)]
    plan, expected = GemmPlan(packed, b), gemm(packed, b)
    half = GemmPlan(*halves, precision="fp16", output="complex-half")
    rounded = gemm(*halves, precision="fp16", output="complex-half").array
    for _ in range(2):
        assert bool((plan(packed, b) == expected).all())
        assert bool((half(*halves).array == rounded).all())


def test_two_streams_have_memory_of_their_own(cp: Any, rng: Any) -> None:
    plan, given, expected = planned(cp, rng, "packed before")
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]
    cp.cuda.Device().synchronize()
    found = []
    for _ in range(20):
        for stream, arrays in zip(streams, given, strict=False):
            with stream:
                found.append(plan(*arrays))
    cp.cuda.Device().synchronize()
    for number, x in enumerate(found):
        assert bool((x == expected[number % 2]).all())


def test_a_plan_says_what_runs_and_is_saved_with_its_tuned_plan(
    cp: Any, rng: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from argand.dft.tuned import TABLE, TunedDft

    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path / "cache"))
    x = cp.asarray(normal(rng, 2048, 1009))
    before = DftPlan(x)
    assert "dft" in before.describe()
    assert "cufft" not in before.describe()
    device = int(cp.cuda.Device().id)
    TABLE.keep(device, {before._on_gpu.chosen.entry: TunedDft.of(None)})
    tuned, expected = DftPlan(x), dft(x)
    assert "kernels: cufft" in tuned.describe()
    tuned.save(tmp_path / "plan.json")
    TABLE.path(device).unlink()
    TABLE.forget()
    TABLE.changed()
    assert "cufft" not in DftPlan(x).describe()
    loaded = DftPlan.load(tmp_path / "plan.json", x)
    assert "kernels: cufft" in loaded.describe()
    assert bool((loaded(x) == expected).all())
    TABLE.forget()
    TABLE.changed()
