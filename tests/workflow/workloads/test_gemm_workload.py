"""Products as a workload: ops, scalars, distributions, files and mistakes."""

import h5py
import numpy as np
import pytest
from argand import PRECISIONS, DeviceError
from argand.device import cpu

from tests.workflow.workloads.on_cpu import computed
from workflow.files.input_error import InputError
from workflow.steps.staging import caveats, understood
from workflow.storage.noise import LARGEST_INTEGER, draw
from workflow.workloads.gemm import Gemm, GemmCase


def gemm(**parameters):
    return Gemm("g", GemmCase.model_validate({"kind": "gemm", **parameters}), 3)


@pytest.mark.parametrize("op_a", ["N", "T", "C"])
@pytest.mark.parametrize("op_b", ["N", "T", "C"])
def test_ops_and_scalars_are_blas(op_a, op_b):
    one = gemm(m=3, n=5, k=7, batch=2, alpha=[0.5, -1], beta=[0, 2], op_a=op_a, op_b=op_b)
    staged, found = computed(one)
    oriented = {
        "N": lambda x: x,
        "T": lambda x: x.swapaxes(-1, -2),
        "C": lambda x: x.conj().swapaxes(-1, -2),
    }
    a, b = oriented[op_a](staged.operands["a"]), oriented[op_b](staged.operands["b"])
    a, b, c = (x.astype(complex) for x in (a, b, staged.operands["c"]))
    exact = (0.5 - 1j) * np.einsum("bij,bjk->bik", a, b) + 2j * c
    assert found.shape == (2, 3, 5)
    # gamma(2 k + 6) of the sums of moduli, twice: both sides are computed.
    size = 1.2 * np.abs(a) @ np.abs(b) + 2 * np.abs(c)
    assert np.all(np.abs(found - exact) <= 4 * 20 * 2.0**-53 * size)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_integers_are_exact_at_every_precision(precision):
    one = gemm(m=9, n=8, k=200, init="integer")
    staged, found = computed(one, precision)
    a, b = (staged.operands[name][0] for name in ("a", "b"))
    parts = [part.astype(int) for part in (a.real, a.imag, b.real, b.imag)]
    assert max(np.abs(part).max() for part in parts) <= LARGEST_INTEGER
    assert np.array_equal(found[0].real.astype(int), parts[0] @ parts[2] - parts[1] @ parts[3])
    assert np.array_equal(found[0].imag.astype(int), parts[0] @ parts[3] + parts[1] @ parts[2])


def test_distributions_are_what_they_say():
    count = 100_000
    parts = {
        init: draw(np.random.default_rng(1), (count,), init, 2.0).view(np.float32)
        for init in ("normal", "uniform", "integer", "lognormal")
    }
    # Five standard errors of the mean and of the variance of a normal sample.
    assert abs(parts["normal"].mean()) < 5 / (2 * count) ** 0.5
    assert abs(parts["normal"].var() - 1) < 5 * (2 / (2 * count)) ** 0.5
    assert -0.5 <= parts["uniform"].min() <= -0.499
    assert 0.499 <= parts["uniform"].max() < 0.5
    assert set(np.unique(parts["integer"])) == set(range(-8, 9))
    # log |x| = log |rand - 0.5| + 2 randn: the variances 1 and 4 add; the tails are heavier.
    assert abs(np.log(np.abs(parts["lognormal"])).var() - 5) < 0.15


def test_a_number_is_a_complex_one():
    assert gemm(m=1, n=1, k=1, alpha=2).case.alpha == (2.0, 0.0)
    assert computed(gemm(m=1, n=1, k=1, alpha=2))[1].shape == (1, 1, 1)


@pytest.fixture
def matrices(tmp_path, rng):
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        for name, shape in {"a": (4, 6), "b": (3, 6, 5), "bad": (7, 5)}.items():
            file[name] = rng.normal(size=shape) + 1j * rng.normal(size=shape)
        hole = file["a"][...]
        hole[1, 2] = np.nan
        hole[3, 0] = np.inf
        file["hole"] = hole
    return path


def test_matrices_of_a_file_and_their_provenance(matrices):
    one = gemm(input={"file": matrices, "a": "a", "b": "b"})
    one.check()
    staged, found = computed(one)
    with h5py.File(matrices) as file:
        exact = file["a"][...] @ file["b"][...]
    assert found.shape == (3, 4, 5)
    assert np.abs(found - exact).max() <= 1e-13 * np.abs(exact).max()
    assert staged.operands["a"].dtype == np.complex128
    assert staged.attributes["source"] == str(matrices)
    assert len(staged.attributes["source_sha256"]) == 64
    assert staged.attributes["nonfinite"]["a"] == {"nan": 0, "inf": 0}
    assert one.shape(staged, PRECISIONS["tf32"]).batch == 3


def test_matrices_that_do_not_fit_are_refused_before_reading(matrices):
    with pytest.raises(InputError, match=r"k 6\) and b .* do not fit: k is 6 of a and 7"):
        gemm(input={"file": matrices, "a": "a", "b": "bad"}).check()


def test_nonfinite_input_is_counted_and_refused(matrices):
    source = {"file": matrices, "a": "hole", "b": "b"}
    with pytest.raises(
        InputError, match=r"input.a has 1 NaN and 1 Inf among 24 values, the first at batch 0"
    ):
        gemm(input=source).stage()
    one = gemm(input=source, allow_nonfinite=True)
    staged = one.stage()
    assert staged.attributes["nonfinite"]["a"] == {"nan": 1, "inf": 1}
    said = "1 NaN and 1 Inf let through in a; errors are of finite results alone"
    assert caveats(staged) == said
    assert understood(staged).endswith(f"; {said}")


def test_acoustic_cross_spectra(real_data):
    """Separate real and imaginary datasets; a cross-spectral matrix is Hermitian."""
    where = {"real": "CsmData/csmReal", "imag": "CsmData/csmImaginary"}
    chosen = [":", ":", 20]
    source = {
        "file": real_data / "acoustic" / "b11aCsmEss.h5",
        "a": where,
        "b": where,
        "select": {"a": chosen, "b": chosen},
    }
    one = gemm(input=source, op_b="C")
    staged = one.stage()
    reference = one.reference(staged)
    for name, precision in PRECISIONS.items():
        implementation = one.argand(staged, precision, cpu())
        found = implementation.compute(implementation.prepare(staged.operands))
        accuracy = one.assess(staged, reference, found, precision, "cpu")
        assert accuracy.verified, (name, accuracy.reason)
    matrix = staged.operands["a"][0]
    assert matrix.shape == (8, 8)
    assert np.abs(matrix).max() > 0
    # The file holds the matrix in fp32: off Hermitian by its roundings at most.
    assert np.abs(matrix - matrix.conj().T).max() <= 2.0**-22 * np.abs(matrix).max()


def test_kernels_are_asked_for_by_precision():
    one = gemm(m=3, n=5, k=7, kernels={"tf32": "mma.sync"})
    computed(one, "bf16")
    with pytest.raises(DeviceError, match="kernels are a GPU's"):
        computed(one, "tf32")
