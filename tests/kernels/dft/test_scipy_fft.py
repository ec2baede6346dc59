"""Argand as a backend of scipy.fft on the CPU: bits, precisions, what is refused or left to SciPy.

SciPy's own tests run on it in tests/conformance.
"""

from __future__ import annotations

from typing import Any

import argand
import numpy as np
import pytest
from scipy import fft


def test_what_is_not_ours_is_left_to_the_next_backend() -> None:
    x = np.arange(6.0)
    with fft.set_backend(argand.fft_backend):
        np.testing.assert_allclose(fft.rfft(x), np.fft.rfft(x))
        assert fft.fft(x.astype(np.longdouble)).dtype == np.clongdouble
    with fft.set_backend(argand.fft_backend, only=True), pytest.raises(NotImplementedError):
        fft.rfft(x)


@pytest.mark.parametrize(("single", "error"), [("3xfp16", 1e-6), ("tf32", 1e-3)])
def test_single_numbers_take_the_backends_precision(
    rng: np.random.Generator, single: str, error: float
) -> None:
    x = rng.standard_normal((3, 64, 2)).astype(np.float32).view(np.complex64)[..., 0]
    exact = np.fft.fft(x.astype(complex), 50, axis=-1)
    other = type("other", (argand.fft_backend,), {"single": single})
    with fft.set_backend(other, only=True):
        found = fft.fft(x, 50)
    assert found.dtype == np.complex64
    assert 1e-9 < np.linalg.norm(found - exact) / np.linalg.norm(exact) < error
    with fft.set_backend(argand.fft_backend, only=True):
        assert fft.ifft(x.astype(complex), norm="ortho").dtype == np.complex128


def test_a_subclass_and_its_base_keep_their_own_precision(rng: np.random.Generator) -> None:
    """Whichever is set first, with arguments that the other was or was not set with."""
    x = rng.standard_normal((64, 2)).astype(np.float32).view(np.complex64)[..., 0]
    expected = fft.fft(x)

    def found(backend: Any, *, only: bool) -> bytes:
        with fft.set_backend(backend, only=only):
            return bytes(fft.fft(x).tobytes())

    for only, other in ((False, True), (True, False)):
        base = type("base", (argand.fft_backend,), {})
        coarse = type("coarse", (base,), {"single": "tf32"})
        assert found(base, only=only) == expected.tobytes()
        for first in (only, other):
            assert found(coarse, only=first) != expected.tobytes()
            assert found(base, only=first) == expected.tobytes()


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["?", "b", "e", "f", "d", "F", "D", ">f", ">D"])
@pytest.mark.parametrize("given", [
    {}, {"n": 4}, {"n": 9, "axis": 0}, {"overwrite_x": True}, {"norm": "ortho"}, {"workers": 2},
], ids=str)  # fmt: skip
def test_native_precisions_give_scipys_bits(
    rng: np.random.Generator, dtype: str, given: dict[str, Any]
) -> None:
    x = (10 * rng.standard_normal((5, 6))).astype(dtype)
    for transform in (fft.fft, fft.ifft):
        expected = transform(x.copy(), **given)
        with fft.set_backend(argand.fft_backend, only=True):
            found = transform(x.copy(), **given)
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(("x", "given"), [
    (np.ones(4), {"n": 0}), (np.ones((2, 2)), {"axis": 2}), (np.float64(3), {}),
    (np.ones((4, 0)), {}), (np.ones(4), {"norm": "none"}), (np.ones(4), {"workers": 0}),
], ids=str)  # fmt: skip
def test_what_scipy_refuses_is_refused_in_its_words(x: Any, given: dict[str, Any]) -> None:
    with pytest.raises((ValueError, IndexError)) as expected:
        fft.fft(x, **given)
    with fft.set_backend(argand.fft_backend), pytest.raises(expected.type) as found:
        fft.fft(x, **given)
    assert str(found.value) == str(expected.value)
