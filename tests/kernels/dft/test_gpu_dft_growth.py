"""How errors of folded products grow with the length on a GPU, and how far the model knows them."""

from __future__ import annotations

import numpy as np
import pytest
from argand import dft
from argand.device import Device
from argand.dft.heuristics import own_plan
from argand.dft.legality import wide_fits
from argand.dft.method import method_for
from argand.dft.plan import dft_source
from argand.runtime.compile.compiler import compile_all

from tests.kernels.gemm.folded_sums import ROW, transformed

pytestmark = pytest.mark.gpu
LENGTHS = (17, 31, 67, 97, 127, 131, 149, 199, 251, 307, 359, 401, 449, 509)
SAMPLES = 6000
"""Numbers that an error is taken of, at least: it varies by less than 2% then."""


@pytest.fixture(scope="module")
def errors(gpu: Device) -> dict[int, tuple[float, float]]:
    """Errors of the GPU and of the model, for the same numbers."""
    import cupy
    from argand.dft.gpu import PLAN_OVERRIDE

    plans = {}
    for length in LENGTHS:
        method = method_for(length)
        wide = wide_fits(method.kind, length, length)
        plan = own_plan(method, ROW, gpu.require_arch(), wide=wide)
        assert plan is not None
        plans[length] = plan
    compile_all((dft_source(plan, ROW), gpu.require_arch().target) for plan in plans.values())
    rng, found = np.random.default_rng(5), {}
    for length, plan in plans.items():
        shape = (-(-SAMPLES // length), length, 2)
        x = rng.standard_normal(shape).astype(np.float32).view(np.complex64)[..., 0]
        with PLAN_OVERRIDE.use(plan):
            result = dft(cupy.asarray(x)).get()
        which, model = transformed(x, plan)
        exact = np.fft.fft(x.astype(complex))[:, which]
        size = np.linalg.norm(exact)
        found[length] = (
            float(np.linalg.norm(result[:, which] - exact) / size),
            float(np.linalg.norm(model - exact) / size),
        )
    return found


def test_errors_grow_no_faster_than_the_logarithm(errors: dict[int, tuple[float, float]]) -> None:
    measured = [errors[length][0] for length in LENGTHS]
    assert np.polyfit(np.log(np.log(LENGTHS)), np.log(measured), 1)[0] <= 1


@pytest.mark.parametrize("length", LENGTHS)
def test_the_model_of_sums_has_the_errors_of_the_gpu(
    errors: dict[int, tuple[float, float]], gpu: Device, length: int
) -> None:
    if gpu.require_arch().target != "sm_90a":
        pytest.skip("how many bits other tensor cores keep has not been measured")
    measured, model = errors[length]
    assert abs(measured - model) <= 0.1 * model
