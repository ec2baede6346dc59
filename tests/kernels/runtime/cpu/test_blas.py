"""The kernels of NumPy's OpenBLAS, and its or SciPy's one core for a while, with threads after."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from argand.runtime.cpu import numpy_blas
from argand.runtime.cpu.numpy_blas import has_avx512_kernels, openblas_kernels
from argand.runtime.cpu.one_core import OneCore, numpy_on_one_core, scipy_on_one_core

from tests.kernels.runtime.cpu.forked import holds_in_a_child


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names kernels of x86")
@pytest.mark.skipif(openblas_kernels() is None, reason="NumPy has another BLAS")
@pytest.mark.parametrize("name", ["Haswell", "Sandybridge"])
def test_the_kernels_are_those_that_openblas_was_told_to_take(name: str) -> None:
    program = (
        "from argand.runtime.cpu.numpy_blas import openblas_kernels; print(openblas_kernels())"
    )
    environment = os.environ | {"OPENBLAS_CORETYPE": name}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == name


@pytest.mark.parametrize(
    ("kernels", "cpu_has", "expected"),
    [
        ("SkylakeX", True, True), ("Cooperlake", True, True), ("SapphireRapids", True, True),
        ("of a CPU to come", True, True), ("Haswell", True, False), ("Zen", True, False),
        ("Nehalem", True, False), ("SkylakeX", False, False), ("NeoverseV2", None, False),
        (None, True, False),
    ],
)  # fmt: skip
def test_kernels_for_avx512_are_those_of_a_cpu_that_has_it(
    kernels: str | None, cpu_has: bool | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = {} if cpu_has is None else {"AVX512_SKX": cpu_has}
    monkeypatch.setattr(numpy_blas, "openblas_kernels", lambda: kernels)
    monkeypatch.setattr(
        numpy_blas, "import_module", lambda _: SimpleNamespace(__cpu_features__=features)
    )
    assert has_avx512_kernels() is expected


@pytest.fixture(params=[numpy_on_one_core, scipy_on_one_core], ids=["NumPy's", "SciPy's"])
def on_one_core(request: pytest.FixtureRequest) -> OneCore:
    found: OneCore = request.param
    return found


@pytest.fixture
def count(on_one_core: OneCore) -> Iterator[Callable[[], int]]:
    """Set the OpenBLAS to two threads; yields the function that counts them."""
    threads = on_one_core.threads
    if threads is None:
        pytest.skip("this BLAS has no threads of OpenBLAS's own")
    before = threads.get()
    threads.set(2)
    yield threads.get
    threads.set(before)


def test_a_call_has_one_core_and_its_calls_have(
    on_one_core: OneCore, count: Callable[[], int]
) -> None:
    def nested(x: int) -> list[int]:
        return [x, count(), on_one_core(count), count()]

    assert on_one_core.is_limited()
    assert on_one_core(nested, 7) == [7, 1, 1, 1]
    assert count() == 2


def test_an_error_leaves_the_threads_as_they_were(
    on_one_core: OneCore, count: Callable[[], int]
) -> None:
    with pytest.raises(ZeroDivisionError):
        on_one_core(lambda: 1 / 0)
    assert count() == 2


def test_ctrl_c_at_any_point_leaves_the_threads_as_they_were(
    on_one_core: OneCore, count: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python raises it where a function is called or has returned."""
    threads = on_one_core.threads
    assert threads is not None
    points_left = 0

    def point() -> None:
        nonlocal points_left
        points_left -= 1
        if points_left == 0:
            raise KeyboardInterrupt

    def interrupted(function: Callable[..., Any]) -> Callable[..., Any]:
        def between_points(*arguments: Any) -> Any:
            point()
            found = function(*arguments)
            point()
            return found

        return between_points

    calls = on_one_core.calls
    limited = type(threads)(interrupted(threads.get), interrupted(threads.set))
    monkeypatch.setattr(on_one_core, "threads", limited)
    monkeypatch.setattr(calls, "begin", interrupted(calls.begin))
    monkeypatch.setattr(calls, "end", interrupted(calls.end))
    points = 2 * len(("begin", "get", "set", "function", "end", "set"))
    for number in range(1, points + 1):
        points_left = number
        with pytest.raises(KeyboardInterrupt):
            on_one_core(interrupted(count))
        assert count() == 2
        points_left = 0
        assert on_one_core(count) == 1
    points_left = points + 1
    assert on_one_core(interrupted(count)) == 1
    assert count() == 2


def test_the_last_of_several_calls_at_once_sets_the_threads_again(
    on_one_core: OneCore, count: Callable[[], int]
) -> None:
    inside, first_left = threading.Barrier(2, timeout=60), threading.Event()
    found: list[int] = []

    def first() -> None:
        on_one_core(inside.wait)
        first_left.set()

    def second() -> None:
        inside.wait()
        assert first_left.wait(60)
        found.append(count())

    threads = [threading.Thread(target=x) for x in (first, lambda: on_one_core(second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1]
    assert count() == 2


def test_a_child_of_fork_forgets_the_calls_of_other_threads(
    on_one_core: OneCore, count: Callable[[], int]
) -> None:
    def starts_anew() -> bool:
        return count() == 2 and on_one_core(count) == 1 and count() == 2

    assert on_one_core(holds_in_a_child, starts_anew)
    assert count() == 2


def test_another_blas_stays_as_it_is(on_one_core: OneCore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_one_core, "threads", None)
    assert not on_one_core.is_limited()
    assert on_one_core(divmod, 7, 2) == (3, 1)
