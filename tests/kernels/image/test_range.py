"""Images of covariances near the limits of fp64."""

from __future__ import annotations

import numpy as np
import pytest
from argand import image

from tests.kernels.image.arrays import sky


@pytest.mark.parametrize("antennas", [2, 9, 30])
@pytest.mark.parametrize("scale", [2.0**-800, 2.0**520, 2.0**900])
def test_squares_of_covariances_may_be_out_of_range(antennas: int, scale: float) -> None:
    one = sky(antennas, 2, 5)
    given, *others = one.arguments
    covariances = given.astype(complex)
    power = image(covariances, *others, precision="fp64")
    found = image(scale * covariances, *others, precision="fp64")
    np.testing.assert_allclose(found / scale, power, rtol=1e-12)
    leaning = scale * covariances
    leaning[..., 0, 1] += leaning[..., 0, 0]
    with pytest.raises(ValueError, match="covariances must be Hermitian"):
        image(leaning, *others, precision="fp64")
