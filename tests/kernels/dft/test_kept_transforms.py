"""Transforms of NumPy arrays whose form came before: checked once, and only calls of that form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from argand import dft
from argand.dft import api, scipy_transform
from scipy import fft

X = (np.arange(24).reshape(4, 6) - 3j * np.arange(6) ** 2).astype(np.complex64)


@pytest.fixture(params=[1, 1 << 15], ids=["threads", "one core"], autouse=True)
def new_calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(scipy_transform, "SHARED", request.param)
    api._CPU_CALLS.clear()
    yield
    api._CPU_CALLS.clear()  # calls kept with other values


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 5, 9])
@pytest.mark.parametrize("axis", [-1, 0])
def test_repeated_calls_are_scipys_transform(
    dtype: Any, inverse: bool, norm: str, n: int | None, axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = X.astype(dtype)
    wide = np.zeros((8, 18), dtype)
    wide[::2, ::3] = x
    options: dict[str, Any] = {"axis": axis, "n": n, "norm": norm}
    expected = (fft.ifft if inverse else fft.fft)(x.astype(complex), **options)
    out = np.empty(expected.shape, dtype)
    for a in (x, x, np.asfortranarray(x), wide[::2, ::3]):
        before = a.copy()
        for given in (None, out):
            found = dft(a, inverse=inverse, out=given, **options)
            assert found.dtype == dtype
            assert given is None or found is out
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * abs(expected).max())
        np.testing.assert_array_equal(a, before)
    monkeypatch.setattr(api, "dft_problem", None)  # a call that is checked fails
    dft(x, inverse=inverse, **options)
    with pytest.raises(TypeError):
        dft(x[:3], inverse=inverse, **options)


def test_another_backend_of_scipy_is_not_asked() -> None:
    class Backend:
        __ua_domain__ = "numpy.scipy.fft"

        @staticmethod
        def __ua_function__(*_: Any) -> Any:
            raise AssertionError("asked")

    for norm in ("backward", "ortho"):
        for _ in range(2):
            with fft.set_backend(Backend, only=True):  # type: ignore[arg-type]
                dft(X, norm=norm)
