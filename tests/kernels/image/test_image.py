"""Images on the CPU: against a direct sum in fp64, properties, and arguments that are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from argand import PRECISIONS, image
from argand.image import api, blocks, cpu, cpu_baselines, cpu_few_antennas
from argand.image.cpu_cosines import cosines_and_sines
from argand.image.problem import MAX_TURNS, SPEED_OF_LIGHT, ImageProblem
from argand.runtime.cpu.numpy_calls import NumpyCalls

from tests.kernels.image.arrays import Sky, sky

SKIES = {
    "one antenna": sky(1, 1, 3),
    "three antennas": sky(3, 2, 50, leading=(4,), seed=9),
    "one direction": sky(5, 2, 1, seed=1),
    "odd": sky(37, 3, 211, leading=(2,), seed=2),
    "few of one matrix": sky(9, 4, 72, seed=7),
    "in a plane": sky(20, 2, 70, dimensions=2, kind="complex128", seed=3),
    "wide": sky(131, 1, 90, seed=4, extent=3e5),
}


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", SKIES)
def test_power_is_the_direct_sum_within_the_bound(name: str, precision: str) -> None:
    one = SKIES[name]
    out = np.full((*one.covariances.shape[:-3], len(one.directions)), np.nan)
    out = out.astype(PRECISIONS[precision].real_output)
    found = image(*one.arguments, precision=precision, out=out)
    assert found is out
    assert np.all(np.abs(found - one.power()) <= one.allowed(precision, "cpu"))


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("values", [1, 60, 400])
@pytest.mark.parametrize("directions", [9, 13])
@pytest.mark.parametrize("shared", [1, 1000], ids=["directions", "matrices"])
def test_pieces_of_images_of_few_antennas(
    monkeypatch: pytest.MonkeyPatch, shared: int, directions: int, values: int, cores: int
) -> None:
    """Some channels, matrices and directions at a time, by complex or real products; on threads.

    These share directions, or matrices where 1000 is more than all weights.
    """
    one = sky(5, 4, directions, leading=(2, 3), seed=6)
    monkeypatch.setattr(cpu_few_antennas, "_most_directions", lambda problem: 1)
    monkeypatch.setattr(cpu, "is_of_baselines", lambda problem: False)
    monkeypatch.setattr(cpu_few_antennas, "_BLOCK_VALUES", values)
    monkeypatch.setattr(cpu_few_antennas, "_SHARED_VALUES", shared)
    monkeypatch.setattr(cpu_few_antennas, "_APART_VALUES", 1)
    monkeypatch.setattr(cpu_few_antennas, "available_cores", lambda: cores)
    for most in (0, 1 << 18):
        monkeypatch.setattr(cpu_few_antennas, "ONE_CORE", most)
        monkeypatch.setattr(api, "_CPU_CALLS", NumpyCalls())
        found = image(*one.arguments, precision="fp64")
        assert np.all(np.abs(found - one.power()) <= one.allowed("fp64", "cpu"))


@pytest.mark.parametrize(
    ("cores", "matrices", "antennas", "directions", "is_on_one_core"),
    [(1, 12, 40, 200, False), (2, 12, 40, 40, False), (2, 12, 40, 200, True),
     (2, 12, 64, 1100, False), (2, 99, 64, 1100, False),
     (2, 99, 40, 200, True), (2, 1, 60, 4000, True)],
)  # fmt: skip
def test_blas_takes_one_core_in_threads_of_ours_and_where_its_own_take_longer(
    cores: int, matrices: int, antennas: int, directions: int, is_on_one_core: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(cpu_few_antennas, "available_cores", lambda: cores)
    problem = ImageProblem((matrices,), 1, antennas, directions, PRECISIONS["fp32"], 1)
    assert cpu_few_antennas._is_on_one_core(problem) is is_on_one_core
    # A covariance among others has the bits that it has alone.
    alone = replace(problem, leading=())
    assert cpu_few_antennas._is_on_one_core(alone) is is_on_one_core


@pytest.mark.each_value
@pytest.mark.parametrize("antennas", [1, 2, 4, 6, 17])
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("values", [1, 60, 400])
def test_pieces_of_images_of_baselines(
    monkeypatch: pytest.MonkeyPatch, values: int, cores: int, antennas: int
) -> None:
    """Some channels, matrices and directions at a time; groups of terms; on threads."""
    one = sky(antennas, 3, 9, leading=(2, 3), seed=6)
    most = {"_BLOCK_VALUES": values, "_SHARED_TIME": 1, "ONE_CORE_VECTOR": 64, "_LANES": 2}
    for name, value in most.items():
        monkeypatch.setattr(cpu_baselines, name, value)
    monkeypatch.setattr(cpu_baselines, "available_cores", lambda: cores)
    for precision in ("fp64", "fp32"):
        monkeypatch.setattr(api, "_CPU_CALLS", NumpyCalls())
        found = image(*one.arguments, precision=precision)
        assert np.all(np.abs(found - one.power()) <= one.allowed(precision, "cpu"))


@pytest.mark.parametrize(
    ("antennas", "precision", "by_avx512", "most"),
    [(39, "fp64", True, 1), (40, "fp32", True, 2), (40, "fp32", False, 2), (5, "fp64", False, 16)],
)
def test_kernels_of_blas_choose_complex_products(
    monkeypatch: pytest.MonkeyPatch, antennas: int, precision: str, by_avx512: bool, most: int
) -> None:
    """How many covariances an image has does not change the choice."""
    monkeypatch.setattr(cpu_few_antennas, "has_avx512_kernels", lambda: by_avx512)
    for matrices in ((), (9,)):
        problem = ImageProblem(matrices, 1, antennas, 70, PRECISIONS[precision], 1)
        assert cpu_few_antennas._most_directions(problem) == most


def test_terms_of_baselines_keep_the_bound_of_sums() -> None:
    """Roundings one after another: of a group and of the groups' sum."""
    for antennas in range(1, 65):
        problem = ImageProblem((), 1, antennas, 1, PRECISIONS["fp32"], 1)
        one = cpu_baselines.BaselineImage(problem, np.dtype(np.complex64))
        assert antennas**2 <= one.groups * one.width <= antennas * (antennas + 1)
        assert one.width + one.groups - 1 <= 4 * antennas + 7


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
@pytest.mark.parametrize("antennas", [1, 2, 3, 4, 5, 8, 30])
def test_an_image_is_the_same_bits_alone_and_among_others(antennas: int, precision: str) -> None:
    for directions in (3, 50, 3000):
        many = sky(antennas, 7, directions, leading=(40,), seed=8)
        found = image(*many.arguments, precision=precision)
        some = image(many.covariances[5:12], *many.arguments[1:], precision=precision)
        np.testing.assert_array_equal(some, found[5:12])
        for number in (0, 39):
            alone = image(many.covariances[number], *many.arguments[1:], precision=precision)
            np.testing.assert_array_equal(alone, found[number])


@pytest.mark.parametrize("precision", PRECISIONS)
def test_blocks_of_directions_are_shared_among_cores(
    monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """BLAS has one core in each block."""
    one = SKIES["odd"]
    monkeypatch.setattr(api, "_CPU_CALLS", NumpyCalls())
    values = {"_SHARED_VALUES": 1, "ONE_CORE": 37 * 37 * 9}
    for name, value in values.items():
        monkeypatch.setattr(blocks, name, value)
    monkeypatch.setattr(blocks, "available_cores", lambda: 2)
    monkeypatch.setattr(cpu, "has_few_antennas", lambda _: False)
    shared: list[object] = []
    monkeypatch.setattr(blocks, "numpy_on_one_core", lambda share: shared.append(share()))
    found = image(*one.arguments, precision=precision)
    assert np.all(np.abs(found - one.power()) <= one.allowed(precision, "cpu"))
    assert len(shared) == len(one.frequencies)


def test_cosines_of_half_angles_are_those_of_the_angle(rng: np.random.Generator) -> None:
    """At quarters of a turn and beside them the tangent or its square is 0, 1 or very large."""
    quarters = np.arange(-8, 9)[:, None] / 8
    beside = quarters + np.array([0, 2.0**-53, -(2.0**-53), 1e-9, -1e-9])
    turns = np.concatenate([beside.ravel(), rng.uniform(-1, 1, 1 << 16)])
    angles = 2 * np.longdouble("3.14159265358979323846264338327950288") * turns
    cosines, sines = np.empty((2, turns.size))
    cosines_and_sines(turns.copy(), cosines, sines)
    for found, exact in ((cosines, np.cos(angles)), (sines, np.sin(angles))):
        assert np.abs(found - exact).max() < 10 * 2.0**-53


def test_a_coarse_precision_is_rounded() -> None:
    """Else the bounds above would hold for one that computes in fp64 whatever is asked."""
    one = SKIES["odd"]
    truth = one.power()
    errors = [
        np.abs(image(*one.arguments, precision=name) - truth).max()
        for name in ("bf16", "tf32", "3xtf32", "fp64")
    ]
    assert errors[0] > 2 * errors[1] > 2e2 * errors[2] > 2e4 * errors[3]


def test_signs_are_mirror_images() -> None:
    one = SKIES["odd"]
    found = image(*one.arguments, precision="fp64", sign=-1)
    assert np.all(np.abs(found - one.power(-1)) <= one.allowed("fp64", "cpu"))
    assert np.abs(found - one.power()).max() > 1e-3


def test_a_common_shift_of_positions_changes_nothing() -> None:
    one = SKIES["odd"]
    away = one.positions + np.array([6.4e6, -1e6, 3e5])
    shifted = (one.covariances, away, *one.arguments[2:])
    assert np.all(np.abs(image(*shifted) - one.power()) <= one.allowed("3xtf32", "cpu"))


def test_phases_hold_far_from_the_centre() -> None:
    """At 2^19 wavelengths a phase in fp32 alone would be off by whole radians."""
    one = sky(6, 1, 40, seed=5)
    far = MAX_TURNS / 2 * SPEED_OF_LIGHT / one.frequencies[0]
    x = one.positions / np.abs(one.positions).max() * far / 2
    one = Sky(one.covariances, x, *one.arguments[2:])
    for name in ("fp64", "fp32", "3xfp16"):
        found = image(*one.arguments, precision=name)
        assert np.all(np.abs(found - one.power()) <= one.allowed(name, "cpu"))


def test_layouts_and_types_are_read_as_they_are() -> None:
    one = sky(9, 2, 11, kind="complex128")
    truth = image(*one.arguments, precision="fp64")
    r, x, f, s = one.arguments
    turned = np.ascontiguousarray(r.transpose(2, 1, 0)).transpose(2, 1, 0)
    for same in (turned, r.astype(">c16"), np.asfortranarray(r)):
        np.testing.assert_array_equal(image(same, x, f, s, precision="fp64"), truth)
    whole = np.eye(9, dtype=np.int8)[None] * 27 + 100
    two = image(whole, x, f[:1], s)
    np.testing.assert_allclose(
        two, image(whole.astype(float), x, f[:1], s, precision="fp64"), rtol=1e-4
    )
    assert np.all(two >= 240)  # 27 |w|^2 and what is not negative


@pytest.mark.parametrize("bad", [np.nan, np.inf, complex(0, np.nan)])
@pytest.mark.parametrize("precision", ["fp64", "3xtf32", "fp16"])
def test_what_is_not_finite_leaves_no_finite_power(bad: complex, precision: str) -> None:
    one = sky(7, 2, 5, leading=(2,))
    one.covariances[1, 0, 3, 4] = one.covariances[1, 0, 4, 3] = bad
    found = image(*one.arguments, precision=precision)
    assert np.isfinite(found[0]).all()
    assert not np.isfinite(found[1]).any()


@pytest.mark.parametrize("antennas", [1, 3, 7, 30])
def test_a_diagonal_that_is_not_finite_leaves_no_finite_power(antennas: int) -> None:
    """Else its imaginary part, which a Hermitian matrix does not have, would be passed over."""
    for bad in (complex(1, np.nan), complex(1, np.inf)):
        one = sky(antennas, 2, 5, leading=(2,))
        one.covariances[1, 0, -1, -1] = bad
        found = image(*one.arguments)
        assert np.isfinite(found[0]).all()
        assert not np.isfinite(found[1]).any()


@pytest.mark.parametrize("antennas", [4, 70])
def test_places_are_those_that_arrays_hold_now(antennas: int) -> None:
    """Checks and baselines are kept by the numbers of positions and frequencies."""
    one = sky(antennas, 2, 9)
    before = image(*one.arguments)
    for place in (one.positions, one.frequencies):
        place *= 2
        found = image(*one.arguments)
        assert np.all(np.abs(found - one.power()) <= one.allowed("fp32", "cpu"))
        assert np.abs(found - before).max() > 1e-3
    one.frequencies[1] = -1
    with pytest.raises(ValueError, match="frequencies must be finite and positive"):
        image(*one.arguments)
    one.frequencies[1], one.positions[2, 0] = 1e8, np.nan
    with pytest.raises(ValueError, match="positions must be finite"):
        image(*one.arguments)


def test_infinities_of_both_signs_add_up_to_none_in_silence() -> None:
    one = sky(2, 2, 64, leading=(8,))
    one.covariances[..., 0, 0] = np.inf, -np.inf
    for precision in ("fp64", "bf16"):
        assert np.isnan(image(*one.arguments, precision=precision)).all()


@pytest.mark.parametrize("sizes", ["3023", "3403", "3420", "0000", "0423"])
def test_empty_arguments_have_no_power(sizes: str) -> None:
    images, antennas, channels, directions = map(int, sizes)
    r = np.zeros((images, channels, antennas, antennas), complex)
    arguments = r, np.zeros((antennas, 3)), np.ones(channels), np.zeros((directions, 2))
    np.testing.assert_array_equal(image(*arguments), np.zeros((images, directions)))


def test_the_default_precision_is_that_of_the_data() -> None:
    r, x, f, s = sky(4, 2, 3).arguments
    for wide in (r.astype("c16"), r.astype("c8")):
        single = wide.dtype == np.complex64
        found = image(wide, x, f, s)
        named = image(wide, x, f, s, precision="fp32" if single else "fp64")
        np.testing.assert_array_equal(found, named)
        assert image(wide, x, f, s, out=np.empty(3)).dtype == np.float64
        assert image(wide, x, f, s, out=np.empty(3, "f4")).dtype == np.float32


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
