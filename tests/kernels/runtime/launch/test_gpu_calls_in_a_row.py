"""Calls in a row overwrite what the ones before read, and read what they wrote.

Kernels of a stream begin while the one before ends (`argand.runtime.compile.dependent_launch`). One
that waited too late, or not at all, would leave other bits than calls that the host waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, apply_gate, dft, gemm, softmax
from argand.device import Arch, Device
from argand.softmax.candidates import SoftmaxCandidate
from argand.softmax.problem import SoftmaxProblem

from tests.kernels.gates.gate_cases import random_unitary
from tests.kernels.gemm.product_cases import normal

pytestmark = pytest.mark.gpu

SOURCES, SLOTS, REPEATS = 3, 20, 6
"""Arrays that are read in turn, results that are kept, and how often all of them are written."""
Step = Callable[[Any, Any], object]
"""Computes a second array from a first of the same form."""

SOFTMAXES = {
    "lanes": (400, 300, "f4", None),
    "a block": (264, 2000, "f4", None),
    "slabs": (70_000, 33, "f2", None),
    "a cluster": (80, 8192, "f4", SoftmaxCandidate(256, 4)),
    "staged": (500, 8192, "f4", SoftmaxCandidate(256, 2, staged=True)),
    "streamed": (300, 16_384, "f4", SoftmaxCandidate(256, 1, words=16)),
    "a ring": (200, 8192, "f4", SoftmaxCandidate(256, 1, epilogue_stages=2)),
    "a ring of two blocks": (200, 8192, "f4", SoftmaxCandidate(256, 2, epilogue_stages=2)),
}
"""By what holds a row: rows, columns, their type, and a candidate in place of the choice."""
GATES = {
    "small": (8, (1,)), "of single amplitudes": (14, (3, 9)), "by mma": (14, (0, 3, 4, 9)),
    "by wgmma": (14, (0, 3, 4, 9, 11, 12)),
}  # fmt: skip
"""Qubits of a state, and targets."""
TRANSFORMS = {
    "dense": (300, 64), "two factors": (100, 1000), "butterflies": (300, 509),
    "three kernels": (8, 20_011),
}  # fmt: skip
"""Rows and their length."""


def _plan(x: Any, candidate: SoftmaxCandidate | None, arch: Arch) -> AbstractContextManager[object]:
    """A context in which softmaxes of arrays like x take the candidate."""
    from argand.softmax.gpu import PLAN_OVERRIDE, form_of

    if candidate is None:
        return nullcontext()
    problem = SoftmaxProblem(x.shape, "softmax", PRECISIONS["fp32"], "fp32", "fp32", 8.0)
    form = form_of(problem, x, x)
    plan = candidate.plan(form, arch, problem.columns)
    if plan is None:
        pytest.skip(f"no such plan on {arch.target}")
    return PLAN_OVERRIDE.use((plan, form.vector))


def assert_reads_what_was_written(
    cp: Any, sources: Sequence[Any], step: Step, after: str, *, captured: bool
) -> None:
    """Make two calls after one another, through one array, again and again: each result is right.

    ``after`` is what comes between: "nothing", "a foreign kernel" that rewrites the array, or
    "a copy" of it that the second call reads. ``captured`` makes them in a graph.
    """
    between, copied = cp.empty_like(sources[0]), cp.empty_like(sources[0])
    numbers = between.view(between.real.dtype)
    found = [cp.empty_like(sources[0]) for _ in range(SLOTS)]
    expected = []
    for x in sources:
        step(x, between)
        cp.cuda.Device().synchronize()
        expected.append(cp.empty_like(x))
        step(between, expected[-1])
        cp.cuda.Device().synchronize()
    bits = [x.view(np.uint8) for x in expected]

    def calls() -> None:
        for slot, result in enumerate(found):
            step(sources[slot % SOURCES], between)
            if after == "a foreign kernel":
                cp.multiply(numbers, 1, out=numbers)
            elif after == "a copy":
                copied.data.copy_from_device_async(between.data, between.nbytes)
            step(copied if after == "a copy" else between, result)

    stream = cp.cuda.Stream(non_blocking=True)
    graph = None
    for _ in range(REPEATS):
        with stream:
            if graph is None:
                calls()
            else:
                graph.launch(stream)
        stream.synchronize()
        for slot, result in enumerate(found):
            assert bool((result.view(np.uint8) == bits[slot % SOURCES]).all()), slot
            result.fill(-1)
        cp.cuda.Device().synchronize()
        if captured and graph is None:  # what a first call allocates is there
            with stream:
                stream.begin_capture()
                calls()
                graph = stream.end_capture()


AFTER = pytest.mark.parametrize("after", ["nothing", "a foreign kernel", "a copy"])
CAPTURED = pytest.mark.parametrize("captured", [False, True], ids=["calls", "a graph"])


@AFTER
@CAPTURED
@pytest.mark.parametrize("name", SOFTMAXES)
def test_softmaxes(
    cp: Any, rng: np.random.Generator, gpu: Device, name: str, after: str, captured: bool
) -> None:
    rows, columns, kind, candidate = SOFTMAXES[name]
    sources = [
        cp.asarray(rng.standard_normal((rows, columns)).astype(kind)) for _ in range(SOURCES)
    ]
    output = "fp16" if kind == "f2" else None

    def step(x: Any, y: Any) -> None:
        softmax(x, scale=8.0, output=output, out=y)

    with _plan(sources[0], candidate, gpu.require_arch()):
        assert_reads_what_was_written(cp, sources, step, after, captured=captured)


@AFTER
@CAPTURED
@pytest.mark.parametrize("name", GATES)
def test_gates(cp: Any, rng: np.random.Generator, name: str, after: str, captured: bool) -> None:
    qubits, targets = GATES[name]
    host = random_unitary(rng, len(targets))
    on_device = cp.asarray(random_unitary(rng, len(targets)))
    sources = [cp.asarray(normal(rng, 1 << qubits)) for _ in range(SOURCES)]

    def step(x: Any, y: Any) -> None:
        y.data.copy_from_device_async(x.data, x.nbytes)
        apply_gate(y, host, targets)
        apply_gate(y, on_device, targets)  # two kernels

    assert_reads_what_was_written(cp, sources, step, after, captured=captured)


@AFTER
@CAPTURED
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(
    cp: Any, rng: np.random.Generator, name: str, after: str, captured: bool
) -> None:
    sources = [cp.asarray(normal(rng, *TRANSFORMS[name])) for _ in range(SOURCES)]

    def step(x: Any, y: Any) -> None:
        dft(x, norm="ortho", precision="3xfp16", out=y)

    assert_reads_what_was_written(cp, sources, step, after, captured=captured)


def test_operations_in_turn(cp: Any, rng: np.random.Generator) -> None:
    """A transform, a gate, a product and a softmax, each of what the one before wrote."""
    rows, length = 64, 256
    start = cp.asarray(normal(rng, rows, length))
    factor = cp.asarray(random_unitary(rng, 8).astype(np.complex64))
    matrix = random_unitary(rng, 3)

    def loop(wait: Callable[[], object]) -> tuple[Any, Any]:
        x, y = start.copy(), cp.empty_like(start)
        weights = cp.empty((SLOTS * REPEATS, rows, length), np.float32)
        wait()
        for result in weights:
            dft(x, norm="ortho", out=y)
            wait()
            apply_gate(y.reshape(-1), matrix, (0, 7, 9))
            wait()
            gemm(y, factor, out=x)
            wait()
            softmax(x, power=True, out=result)
            wait()
        return x, weights

    expected = loop(cp.cuda.Device().synchronize)
    for stream in (cp.cuda.Stream(non_blocking=True), cp.cuda.Stream.null):
        with stream:
            found = loop(lambda: None)
        stream.synchronize()
        for mine, other in zip(found, expected, strict=True):
            assert bool((mine.view(np.uint8) == other.view(np.uint8)).all())
