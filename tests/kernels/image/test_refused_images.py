"""Arguments that images on the CPU refuse, and what they do not."""

from __future__ import annotations

import numpy as np
import pytest
from argand import image

from tests.kernels.image.arrays import sky

R, X, F, S = sky(4, 2, 3).arguments
LEANING = R + np.triu(np.ones((4, 4)), 1)
REFUSED = {
    "R of one axis": ((R[0, 0], X, F, S), ValueError, r"covariances must have shape"),
    "R not square": ((R[:, :3], X, F, S), ValueError, r"covariances must have shape"),
    "R of text": ((np.full(R.shape, "a"), X, F, S), TypeError, "covariances must be numbers"),
    "R not Hermitian": ((LEANING, X, F, S), ValueError, "must be Hermitian"),
    "transposed imaginary": ((R.real + 1j * np.abs(R), X, F, S), ValueError, "must be Hermitian"),
    "too few positions": ((R, X[:3], F, S), ValueError, r"positions must have shape \(4 antennas"),
    "positions of one axis": ((R, X[:, :1], F, S), ValueError, "positions must have shape"),
    "complex positions": ((R, X + 0j, F, S), TypeError, "positions must be real"),
    "infinite positions": ((R, X * np.inf, F, S), ValueError, "positions must be finite metres"),
    "positions in nm": ((R, X * 1e9, F, S), ValueError, r"within 2\^20 wavelengths"),
    "frequencies of others": ((R, X, F[:1], S), ValueError, r"frequencies must have shape \(2"),
    "no frequency": ((R, X, 0 * F, S), ValueError, "frequencies must be finite and positive"),
    "NaN frequency": ((R, X, np.nan * F, S), ValueError, "frequencies must be finite"),
    "frequencies in THz": ((R, X, F * 1e12, S), ValueError, r"within 2\^20 wavelengths"),
    "an infinite distance": ((R, 100 * X, F * 1e298, S), ValueError, r"within 2\^20 wavelengths"),
    "directions in degrees": ((R, X, F, S * 57), ValueError, "must not be longer than 1"),
    "below the horizon": ((R, X, F, [[0.8, 0.7]]), ValueError, r"directions\[0\] is \[0.8, 0.7\]"),
    "long vector": ((R, X, F, [[0.8, 0.7, 0.1]]), ValueError, "must not be longer than 1"),
    "NaN direction": ((R, X, F, [[np.nan, 0]]), ValueError, "directions must be finite"),
    "flat directions": ((R, X, F, S.ravel()), ValueError, "directions must have shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused(name: str) -> None:
    arguments, error, said = REFUSED[name]
    with pytest.raises(error, match=said):
        image(*arguments)


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="precision must be one of"):
        image(R, X, F, S, precision="7xint8")
    with pytest.raises(ValueError, match="sign must be 1 or -1, got 2"):
        image(R, X, F, S, sign=2)
    for out in (np.zeros(4, "f4"), np.zeros(3, "c8")):
        with pytest.raises(ValueError, match=r"out must have shape \(3,\) and type float32"):
            image(R, X, F, S, out=out)
    with pytest.raises(ValueError, match="out must be C-contiguous"):
        image(R, X, F, S, out=np.zeros(6, "f4")[::2])


@pytest.mark.parametrize("leading", [(), (4,)])
def test_leaning_diagonals_are_refused(leading: tuple[int, ...]) -> None:
    one = sky(3, 1, 5, leading=leading)
    one.covariances[..., 0, 1, 1] += 0.1j
    with pytest.raises(ValueError, match="must be Hermitian"):
        image(*one.arguments)


@pytest.mark.parametrize("antennas", [30, 150])
@pytest.mark.parametrize("number", [0, 23, 39])
def test_one_leaning_covariance_of_many_is_refused(antennas: int, number: int) -> None:
    """Those of few antennas are compared in several parts."""
    one = sky(antennas, 1, 5, leading=(40,))
    assert image(*one.arguments).shape == (40, 5)
    one.covariances[number, 0, 3, 4] += one.covariances[number, 0, 3, 3]
    with pytest.raises(ValueError, match="must be Hermitian"):
        image(*one.arguments)


def test_a_matrix_that_leans_is_refused_beside_larger_ones() -> None:
    """Its difference is small beside the largest entry of all, and not of its own."""
    leaning = np.stack([LEANING, 1e6 * R])
    with pytest.raises(ValueError, match="one of channel 0 differs"):
        image(leaning, X, F, S)
    image(np.stack([R, 1e6 * R]), X, F, S)


def test_rounding_is_no_reason_to_refuse() -> None:
    rough = R + 1e-3 * np.triu(np.ones((4, 4)), 1)
    np.testing.assert_allclose(
        image(rough, X, F, S, precision="fp64"),
        image((rough + rough.conj().swapaxes(-1, -2)) / 2, X, F, S, precision="fp64"), rtol=1e-12,
    )  # fmt: skip
