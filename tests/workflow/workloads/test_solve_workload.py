"""Systems of equations as a workload: what is staged, computed, delivered, drawn and refused."""

import logging

import h5py
import matplotlib.figure
import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import cpu
from argand.precision import any_precision
from argand.runtime.measuring.ceilings import Ceilings

from tests.workflow.workloads.on_cpu import computed
from workflow.cylinder import directions, incident, matrix, mie_series, surface
from workflow.files.input_error import InputError
from workflow.implementation import NoResultError
from workflow.preflight.loading import load_study
from workflow.steps.delivery import deliver
from workflow.steps.execute import execute
from workflow.steps.result_choice import DeliveryError
from workflow.steps.staging import stage
from workflow.steps.verification import verify
from workflow.storage.certificates import read_certificate
from workflow.storage.products import read_product
from workflow.workloads.solve import Solve, SolveCase

LOG = logging.getLogger("test")
WAVE = {"source": "cylinder", "ka": 6.0, "n": 80, "rhs": 2}


def system(**parameters):
    return Solve("s", SolveCase.model_validate({"kind": "solve", **parameters}), 3)


def assessed(one, precision):
    staged, found = computed(one, precision)
    return one.assess(staged, one.reference(staged), found, any_precision(precision), "cpu")


def test_each_system_is_solved():
    staged, found = computed(system(n=7, rhs=2, batch=3))
    a, b = (staged.operands[name].astype(complex) for name in ("a", "b"))
    assert found.shape == (3, 7, 2)
    np.testing.assert_allclose(a @ found, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("precision", ["9xint8", "12xint8", "15xint8", "17xint8"])
def test_exact_products_verify(precision):
    accuracy = assessed(system(n=300, rhs=2), precision)
    assert accuracy.verified, accuracy.reason


@pytest.mark.parametrize("precision", ["fp64", "fp32", "15xint8"])
def test_the_cylinders_current_is_the_series(precision):
    """The system's error is beside the arithmetic's; 80 points leave nothing of it."""
    accuracy = assessed(system(**WAVE), precision)
    assert accuracy.verified, accuracy.reason
    assert accuracy.measures["expected_error"] < (1e-10 if precision != "fp32" else 1e-5)
    coarse = assessed(system(**{**WAVE, "n": 16}), precision)
    assert coarse.verified, coarse.reason
    assert coarse.measures["expected_error"] > 1e-3


def test_the_cylinder_is_staged_and_delivered_with_its_angles():
    one = system(**WAVE)
    staged, found = computed(one)
    angles = directions(2)
    np.testing.assert_array_equal(staged.operands["a"][0], matrix(6.0, 80))
    np.testing.assert_array_equal(staged.operands["b"][0], incident(6.0, 80, angles))
    product = one.product(staged, found)
    assert (product.name, product.axes) == ("current", ("batch", "unknown", "rhs"))
    angle, series = product.coordinates["angle"], product.coordinates["series"]
    assert (angle.units, angle.of("angle")) == ("rad", ("unknown",))
    np.testing.assert_array_equal(angle.values, surface(80)[1])
    np.testing.assert_allclose(series.values, abs(mie_series(6.0, 80, angles)), rtol=1e-12)
    axes = matplotlib.figure.Figure().subplots()
    one.picture(product, axes)
    assert axes.get_xlabel() == "angle on the cylinder (rad); dots: Mie series"
    assert len(axes.lines) == 4  # two currents, two series
    drawn = {line.get_ls(): line.get_xydata() for line in axes.lines[::2]}
    np.testing.assert_allclose(drawn["-"], drawn["None"], rtol=1e-6, atol=1e-9)
    outline = one.outline()
    assert outline.operands.keys() == staged.operands.keys()
    assert outline.coordinates.keys() == staged.coordinates.keys()


def test_a_shared_matrix_is_factored_once(tmp_path, rng):
    a = rng.normal(size=(6, 6)) + 1j * rng.normal(size=(6, 6))
    b = rng.normal(size=(4, 6, 3)) + 0j
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["a"], file["b"] = a, b
    one = system(input={"file": tmp_path / "s.h5", "a": "a", "b": "b"})
    staged, found = computed(one)
    seen = []

    def once(matrix, sides):
        seen.append(sides.shape)
        return np.linalg.solve(matrix, sides)

    from workflow.workloads.solve import _solved

    again = _solved(once, staged.operands)
    assert seen == [(6, 12)]
    np.testing.assert_allclose(again, found, rtol=0, atol=1e-12)
    np.testing.assert_allclose(a @ found, b, rtol=0, atol=1e-12)


@pytest.fixture
def systems(tmp_path, rng):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        for name, shape in {"a": (5, 5), "wide": (5, 6), "b": (5, 2), "short": (4, 2), "line": (5,),
                            "two": (2, 5, 5), "three": (3, 5, 1), "x": (5, 2)}.items():  # fmt: skip
            file[name] = rng.normal(size=shape) + 1j * rng.normal(size=shape)
        file["singular"] = np.ones((5, 5), complex)
        file["huge"] = 1e60 * np.asarray(file["a"])
    return tmp_path / "in.h5"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": "wide"}, r"input.a must be square, got 5 equations of 6 unknowns"),
        ({"b": "short"}, r"input.b must have 5 equations as a does, got shape \(1, 4, 2\)"),
        ({"b": "line"}, r"one right-hand side alone needs input.axes: \{b: \[equation\]\}"),
        ({"a": "two", "b": "three"}, "input.b must have a batch of 2 or 1 as a does, got 3"),
        ({"expected": "short"}, r"input.expected must have the solution's shape \(1, 5, 2\)"),
    ],
)
def test_systems_that_do_not_fit_are_refused_before_reading(systems, given, message):
    one = system(input={"file": systems, "a": "a", "b": "b", **given})
    with pytest.raises(InputError, match=message):
        one.check()
    with pytest.raises(InputError, match=message):
        one.stage()


def test_a_files_systems(systems):
    source = {"file": systems, "a": "a", "b": "line", "axes": {"b": ["equation"]}}
    staged, found = computed(system(input=source))
    with h5py.File(systems) as file:
        np.testing.assert_allclose(found[0, :, 0], np.linalg.solve(file["a"], file["line"]))
    assert staged.attributes["source"] == str(systems)
    one = system(input={"file": systems, "a": "a", "b": "b", "expected": "x"})
    assert assessed(one, "fp64").measures["expected_error"] > 0.1


def test_what_has_no_solution_says_so(systems):
    one = system(input={"file": systems, "a": "singular", "b": "b"})
    with pytest.raises(NoResultError, match=r"system 0: the matrix is singular: .* column 1 is 0"):
        computed(one)
    one = system(input={"file": systems, "a": "huge", "b": "b"})
    assert assessed(one, "fp64").verified
    with pytest.raises(NoResultError, match="system 0: complex64 cannot hold it"):
        computed(one, "fp32")


def run(case, folder):
    """Records of a study's one workload, after stage, run and verify."""
    study = load_study({"device": "cpu", "baselines": "auto", "workloads": {"w": case}})
    one = study.workload("w")
    staged, ran = folder / "staged.h5", folder / "run.h5"
    stage(one, [], staged, LOG)
    execute(one, staged, ran, cpu(), LOG)
    records = verify(one, staged, ran, Ceilings("another", 10.0, {}), LOG)
    return one, staged, ran, records


def test_a_singular_system_is_recorded_and_not_delivered(systems, tmp_path):
    case = {
        "kind": "solve", "precisions": ["fp64", "fp32"],
        "input": {"file": str(systems), "a": "singular", "b": "b"},
    }  # fmt: skip
    one, staged, ran, records = run(case, tmp_path)
    assert len(records) == 6
    assert not any(record.verified for record in records)
    assert all("singular" in record.reason.lower() for record in records)
    with pytest.raises(DeliveryError, match="the matrix is singular"):
        deliver(one, None, staged, ran, records, records, tmp_path / "p.h5", LOG)
    assert not (tmp_path / "p.h5").exists()


def test_a_precision_without_a_solution_leaves_the_others(tmp_path, rng):
    """Numbers of 1e80 have a solution at fp64, and none at fp32."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["a"] = rng.normal(size=(40, 40)) + 0j
        file["b"] = 1e80 * rng.normal(size=(40, 1)) + 0j
    case = {
        "kind": "solve", "precisions": ["fp64", "fp32"], "tolerance": 1e-6,
        "input": {"file": str(tmp_path / "in.h5"), "a": "a", "b": "b"},
    }  # fmt: skip
    one, staged, ran, records = run(case, tmp_path)
    by_name = {(r.implementation, r.precision): r for r in records}
    assert by_name["argand", "fp64"].verified
    assert by_name["argand", "fp32"].reason == "system 0: complex64 cannot hold it"
    deliver(one, None, staged, ran, records, records, tmp_path / "p.h5", LOG)
    assert read_certificate(tmp_path / "p.h5")["precision"] == "fp64"
    assert read_product(tmp_path / "p.h5").axes == ("batch", "unknown", "rhs")


def test_a_solution_is_an_operand_of_another_workload(tmp_path):
    """A x, computed by gemm of the solution, is b again."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        rng = np.random.default_rng(1)
        file["a"] = rng.normal(size=(6, 6)) + 0j
        file["b"] = rng.normal(size=(6, 2)) + 0j
    back = {
        "kind": "gemm",
        "input": {"file": str(tmp_path / "in.h5"), "a": "a", "b": {"workload": "x"},
                  "axes": {"b": ["batch", "k", "n"]}},
    }  # fmt: skip
    source = {"file": str(tmp_path / "in.h5"), "a": "a", "b": "b"}
    settings = {"device": "cpu", "precisions": ["fp64"], "baselines": "none"}
    study = load_study(
        {**settings, "workloads": {"x": {"kind": "solve", "input": source}, "back": back}}
    )
    one, product = study.workload("x"), tmp_path / "x.h5"
    staged, ran = tmp_path / "staged.h5", tmp_path / "run.h5"
    stage(one, [], staged, LOG)
    execute(one, staged, ran, cpu(), LOG)
    records = verify(one, staged, ran, Ceilings("another", 10.0, {}), LOG)
    deliver(one, None, staged, ran, records, records, product, LOG)
    again = study.workload("back").stage({"x": product})
    found = again.operands["a"] @ again.operands["b"]
    with h5py.File(tmp_path / "in.h5") as file:
        np.testing.assert_allclose(found[0], file["b"], rtol=0, atol=1e-12)


def test_shape_counts_the_factorization_once_a_matrix():
    one = system(n=10, rhs=3, batch=2)
    shape = one.shape(one.outline(), PRECISIONS["fp64"])
    assert shape.flops == pytest.approx(2 * (8 / 3 * 1000 + 8 * 100 * 3))
    assert (shape.batch, shape.m, shape.n) == (2, 10, 3)
    assert shape.bytes_moved == 16 * 2 * (100 + 2 * 30)
