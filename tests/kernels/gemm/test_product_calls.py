"""Keys of calls on arrays that the call cache makes in several places are the same (no GPU)."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.kernels.without_device import without_device

OPTIONS = ("3xtf32", None, False)


class Array:
    """In the place of CuPy's."""

    def __init__(self, like: np.ndarray[Any, Any], address: int, device: int = 0) -> None:
        self.dtype, self.shape, self.strides = like.dtype, like.shape, like.strides
        self.itemsize, self._c_contiguous = like.itemsize, like.flags.c_contiguous
        self.data = SimpleNamespace(ptr=address, device_id=device)


@pytest.fixture(params=[False, True], ids=["one GPU", "several GPUs"])
def modules(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Any, Any]]:
    with without_device("gemm.gpu_calls", "runtime.calls.call_cache") as (_, calls, found):
        for module in (calls, found):
            monkeypatch.setattr(module, "_ndarray", Array)
            monkeypatch.setattr(module, "SEVERAL", request.param)
        monkeypatch.setattr(found, "current_device", lambda: 1)
        monkeypatch.setattr(calls, "_current_device", lambda: 1)
        yield found, calls.ProductCalls(table=calls.tuned.TABLE)


def part(module: Any, x: Any) -> list[Any]:
    """Return an array's part of a key as calls on tensors have it."""
    strides = x._c_contiguous or x.strides
    at, device = x.data.ptr, x.data.device_id
    return list(module.key_of_array(x.dtype, x.shape, strides, at, device))


@pytest.mark.parametrize("with_out", [False, True])
def test_a_product_of_arrays_has_the_key_of_one_of_tensors(
    modules: tuple[Any, Any], with_out: bool
) -> None:
    (call_cache, cache), numbers = modules, np.zeros((4, 6), np.complex64)
    a, b = Array(numbers, 1 << 20), Array(numbers.T, (1 << 21) + 8, device=1)
    out = Array(numbers, 1 << 22) if with_out else None
    of_out = [None] if out is None else part(call_cache, out)
    key, found = cache.repeat((a, b, None), out, OPTIONS)
    assert found is None
    expected, _ = cache.find(
        [OPTIONS, *part(call_cache, a), *part(call_cache, b), None, *of_out]
    )  # fmt: skip
    assert key == expected


def test_a_kept_product_is_repeated_at_its_own_addresses(
    modules: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, cache), numbers, places = modules, np.zeros((4, 4), np.complex64), []
    serves = True

    def run(*at: Any) -> Any:
        places.append(at)
        return None if serves else NotImplemented

    first = [Array(numbers, at << 20, device=1) for at in (1, 2)]
    key, _ = cache.repeat((*first, None), None, OPTIONS)
    cache.keep(key, run, (*first, None), None, (4, 4), "complex64")
    result = Array(numbers, 5 << 20)
    monkeypatch.setattr(cache, "result_of", lambda call: (result, result.data.ptr))
    others = [Array(numbers, at << 20, device=1) for at in (3, 4)]
    assert cache.repeat((*others, None), None, OPTIONS) == (key, result)
    assert places == [(3 << 20, 4 << 20, None, 5 << 20)]
    with cache.planning():  # a thread that plans makes its calls
        assert cache.repeat((*others, None), None, OPTIONS) == (key, None)
    serves = False
    assert cache.repeat((*others, None), None, OPTIONS) == (key, None)
    for changed in (numbers.T[:2], numbers.astype(np.complex128), numbers[:, :2]):
        other = Array(changed, 3 << 20, device=1)
        assert cache.repeat((other, others[1], None), None, OPTIONS)[0] != key
    assert cache.repeat((*others, None), None, ("tf32", None, False))[0] != key
    assert cache.repeat((*others, None), None, (["tf32"], None, False))[1] is None
    moved = Array(numbers, (3 << 20) + 8, device=1)
    assert cache.repeat((moved, others[1], None), None, OPTIONS)[0] != key
    assert len(places) == 2
