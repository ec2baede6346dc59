"""Means over trajectories of a noisy circuit, verified against its density matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import gpu
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from tests.workflow.workloads.on_cpu import computed
from workflow.circuits import density_matrix
from workflow.circuits import trajectory_readout as means
from workflow.circuits.fused_gates import TargetedGate
from workflow.files.input_error import InputError
from workflow.preflight.estimates import estimate
from workflow.preflight.loading import load_study
from workflow.workloads import KINDS, workload_of
from workflow.workloads.noisy_readout import NoisyReadout

RANDOM = {"name": "random", "qubits": 4, "depth": 4, "seed": 2}
NOISE = {"depolarising": 0.05, "damping": 0.1, "trajectories": 8000}
KEYS: dict[str, dict[str, Any]] = {
    "observables": {"observables": ["ZZIZ", "XYZX", {"pauli": "IIXX", "coefficient": -2}]},
    "probabilities": {"probabilities": [3, 0]},
    "shots": {"shots": 8000, "noise": {"depolarising": 0.05, "damping": 0.1}},
}


def workload(circuit: dict[str, Any] = RANDOM, **keys: Any) -> NoisyReadout:
    kind = KINDS["statevector"]
    given = {"kind": "statevector", "circuit": circuit, "noise": NOISE, **keys}
    found = workload_of("s", kind.case_type.model_validate(given), 5)
    assert isinstance(found, NoisyReadout)
    return found


@pytest.mark.parametrize(
    ("readout", "precision"),
    [
        ("observables", "fp64"),
        ("shots", "3xfp16"),
        pytest.param("probabilities", "3xfp16", marks=pytest.mark.exhaustive),
    ],
)
def test_means_verify_and_wrong_ones_do_not(readout: str, precision: str) -> None:
    one, row = workload(**KEYS[readout]), PRECISIONS[precision]
    staged, result = computed(one, precision)
    reference = one.reference(staged)
    found = one.assess(staged, reference, result, row, "cpu")
    assert found.verified, found.reason
    assert result.shape == one.result_shape(staged)
    assert found.measures["fidelity"] == result[0, -1] < 0.9

    def verdict(place: tuple[int, int], value: float) -> str:
        wrong = result.copy()
        wrong[place] = value
        return one.assess(staged, reference, wrong, row, "cpu").verdict

    # Of shots the counts would no longer add up.
    assert verdict((0, 0), result[0, 0] + 0.2) == ("wrong" if readout == "shots" else "suspect")
    assert verdict((0, -1), 0.5 * result[0, -1]) == "suspect"
    assert verdict((1, 0), -result[1, 0]) == "wrong"
    assert verdict((1, 1), 2.5 / NOISE["trajectories"] ** 0.5) == "wrong"
    assert verdict((0, 1), np.nan) == "wrong"
    noise = KEYS[readout].get("noise", NOISE)
    other = workload(**KEYS[readout] | {"noise": {**noise, "damping": 0.4}})
    assert one.assess(staged, other.reference(staged), result, row, "cpu").verdict == "suspect"


@pytest.mark.gpu
@pytest.mark.parametrize("readout", KEYS)
def test_a_gpu_averages_the_same_trajectories(readout: str, cp: Any) -> None:
    """A trajectory may differ whose jump is within rounding of its number; none is here."""
    one = workload(**KEYS[readout])
    staged, on_cpu = computed(one, "fp64")
    ours = one.argand(staged, PRECISIONS["fp64"], gpu(0))
    operands = {name: cp.asarray(data) for name, data in ours.prepare(staged.operands).items()}
    result = ours.compute(operands).get()
    np.testing.assert_allclose(result, on_cpu, atol=1e-12)
    found = one.assess(staged, one.reference(staged), result, PRECISIONS["fp64"], "cuda")
    assert found.verified, found.reason


@pytest.mark.parametrize("readout", KEYS)
def test_a_sweep_may_begin_without_noise(readout: str) -> None:
    none = {"depolarising": 0.0, "damping": 0.0}
    noise = none if readout == "shots" else {**none, "trajectories": 8000}
    one = workload(**KEYS[readout] | {"noise": noise})
    staged, result = computed(one)
    reference = one.reference(staged)
    found = one.assess(staged, reference, result, PRECISIONS["fp64"], "cpu")
    assert found.verified, found.reason
    assert abs(result[0, -1] - 1) < 1e-13
    if readout != "shots":
        np.testing.assert_allclose(result[0, :-1] / reference.scale, reference.values, atol=1e-13)


def test_few_trajectories_prove_nothing() -> None:
    one = workload(noise={**NOISE, "trajectories": 100}, **KEYS["observables"])
    staged, result = computed(one, "fp32")
    found = one.assess(staged, one.reference(staged), result, PRECISIONS["fp32"], "cpu")
    assert found.verdict == "unproven"


@pytest.mark.parametrize("readout", KEYS)
def test_trajectories_that_prove_nothing_are_refused_before_they_are_run(readout: str) -> None:
    def runs(count: int, **keys: Any) -> NoisyReadout:
        given = {"noise": {**NOISE, "trajectories": count}}
        if readout == "shots":
            given = {"shots": count}  # type: ignore[dict-item]
        return workload(**KEYS[readout] | given | keys)

    message = r"must be at least \d{4} to prove a digit of \d+ means"
    with pytest.raises(InputError, match=message) as refused:
        runs(99).check()
    least = int(str(refused.value).split("at least ")[1].split()[0])
    runs(least).check()
    with pytest.raises(InputError, match=message):
        runs(least - 1).check()
    runs(99, precision="fp64", allow_unproven=True).check()


def test_shots_of_bits_that_noise_would_change_are_refused(tmp_path: Path) -> None:
    """A control may be measured first; its noise behind that is not seen in the bit."""
    path, keys = tmp_path / "c.qasm", KEYS["shots"]
    first = "OPENQASM 2.0;\nqreg q[2]; creg c[2]; U(1,0,0) q[0];\nmeasure q[0] -> c[0];\n"
    path.write_text(first + "CX q[0],q[1]; measure q[1] -> c[1];")
    workload({"file": str(path)}, noise=NOISE, probabilities=[0]).check()
    with pytest.raises(InputError, match=r"^noise: gates act on qubits \[0\] after their meas"):
        workload({"file": str(path)}, **keys).check()
    path.write_text(first + "barrier q; U(1,0,0) q[1]; measure q[1] -> c[1];")
    workload({"file": str(path)}, **keys).check()
    path.write_text(first + "CX q[0],q[1]; measure q -> c;")
    workload({"file": str(path)}, **keys).check()


def test_a_sample_has_a_tolerance_of_its_own() -> None:
    assert workload(**KEYS["observables"]).case.accepted_error == 0.1
    assert workload(**KEYS["observables"], tolerance=0.01).case.accepted_error == 0.01


def test_the_product_has_standard_errors() -> None:
    one = workload(**KEYS["observables"])
    staged = one.stage()
    product = one.product(staged, np.array([[0.5, -0.25, 1, 0.75], [0.01, 0.02, 0.03, 0.001]]))
    assert product.data.tolist() == [0.5, -0.25, 1]
    assert product.coordinates["standard_error"].values.tolist() == [0.01, 0.02, 0.03]
    assert product.coordinates["standard_error"].axes == ("observable",)
    assert product.title == (
        "s: expectation values, means of 8000 trajectories, fidelity 0.75 +- 0.001 to the pure "
        "state"
    )
    assert one.product_outline(one.outline()).data.shape == (3,)
    axes = Figure().subplots()
    one.picture(product, axes)
    (drawn,) = axes.collections
    assert isinstance(drawn, LineCollection)
    heights = [np.ptp(segment[:, 1]) for segment in np.asarray(drawn.get_segments())]
    assert np.allclose(heights, [0.02, 0.04, 0.06])


def test_the_product_of_shots_is_the_counts_above_zero() -> None:
    one = workload(**KEYS["shots"])
    outline = one.product_outline(one.outline())
    assert outline.data.shape == outline.coordinates["standard_error"].values.shape == (16,)
    counts = np.array([0, 6000, *[0] * 13, 2000])
    shares = np.array([[*counts / 8000, 0.75], [*[0.005] * 16, 0.001]])
    product = one.product(one.outline(), shares)
    assert product.coordinates["outcome"].values.tolist() == [1, 15]
    assert product.data.tolist() == [6000, 2000]
    assert product.coordinates["standard_error"].values.tolist() == [40, 40]
    assert product.title.startswith("s: counts of 8000 shots, each on a trajectory of its own")


def test_counts_that_are_none_are_wrong() -> None:
    one = workload(**KEYS["shots"])
    staged = one.stage()
    reference = one.reference(staged)
    shares = np.append(reference.values, reference.fidelity)
    counts = np.floor(8000 * reference.values)
    counts[0] += 8000 - counts.sum()

    def found(counts: Any) -> Any:
        shares[:-1] = counts / 8000
        result = np.stack([shares, np.zeros(17)])
        return one.assess(staged, reference, result, PRECISIONS["fp64"], "cpu")

    assert found(counts).verified
    assert found(counts + np.eye(16)[0]).reason.startswith("counts do not add up to the shots")
    assert "a count is not whole" in found(counts + (np.eye(16)[0] - np.eye(16)[1]) / 2).reason


def test_a_shot_falls_where_the_running_sums_of_its_trajectory_say(
    rng: np.random.Generator,
) -> None:
    """Wherever a block begins; the numbers are those after the channels of noise."""
    states = rng.standard_normal((9, 8, 2)).view(complex)[..., 0]
    readout = means.outcomes(5, 6)
    found = readout(states, 0)
    np.testing.assert_array_equal(found[3:], readout(states[3:], 3))
    drawn = np.random.Philox(key=5, counter=[0, 6, 0, 0]).random_raw(9) * 2.0**-64
    for state, number, one in zip(states, drawn, found, strict=True):
        sums = np.cumsum(abs(state) ** 2)
        assert one.sum() == 1
        assert np.argmax(one) == np.searchsorted(sums, number * sums[-1], side="right")


def test_a_density_matrix_by_hand() -> None:
    """|1> under damping 0.25 and a Bell pair, of which one qubit is fully depolarised."""
    flip, cnot = np.eye(2)[::-1].astype(complex), np.eye(4)[[0, 3, 2, 1]].astype(complex)
    rho = density_matrix.noisy_density(1, [TargetedGate((0,), flip)], 0.0, 0.25)
    np.testing.assert_allclose(rho, np.diag([0.25, 0.75]), atol=1e-15)
    hadamard = np.array([[1, 1], [1, -1]], complex) / 2**0.5
    bell = [TargetedGate((0,), hadamard), TargetedGate((0, 1), cnot)]
    pure = density_matrix.pure_state(2, bell)
    np.testing.assert_allclose(pure, np.array([1, 0, 0, 1]) / 2**0.5, atol=1e-15)
    exact = density_matrix.noisy_density(2, bell, 0.0, 0.0)
    np.testing.assert_allclose(exact, np.outer(pure, pure.conj()), atol=1e-15)
    values = density_matrix.expectation(exact, ["ZZ", "XX", "YY", "IZ", "XY"])
    np.testing.assert_allclose(values, [1, 1, -1, 0, 0], atol=1e-15)
    mixed = density_matrix.noisy_density(2, bell, 1.0, 0.0)
    np.testing.assert_allclose(mixed, np.eye(4) / 4, atol=1e-15)
    lower = density_matrix.noisy_density(2, [TargetedGate((1,), flip)], 0.0, 0.0)
    assert density_matrix.marginals(lower, [1, 0]).tolist() == [0, 1, 0, 0]


def test_means_of_blocks_are_those_of_all(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = rng.standard_normal((53, 8, 2)).view(complex)[..., 0]
    states /= np.linalg.norm(states, axis=1)[:, None]
    readout = means.together(
        [means.expectation([("ZIY", 2.0)]), means.marginals([2, 0]), means.overlap(states[0])]
    )
    monkeypatch.setattr(means, "_BLOCK", 80)
    found = means.averaged(lambda first, some: states[first : first + some], readout, 53, 8)
    values = readout(states, 0)
    np.testing.assert_allclose(found[0], values.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(found[1], values.std(axis=0, ddof=1) / 53**0.5, atol=1e-15)
    np.testing.assert_allclose(values[:, 1:5].sum(axis=1), 1, atol=1e-14)
    assert values[0, -1] == pytest.approx(1)


def test_what_has_no_density_matrix_is_reported_before_a_job() -> None:
    with pytest.raises(InputError, match="noise: the circuit must have at most 10 qubits"):
        workload({"name": "ghz", "qubits": 11}, probabilities=[0]).check()
    with pytest.raises(InputError, match="observables: the Pauli string 'ZZ' has 2 letters"):
        workload(observables=["ZZ"]).check()


def test_a_run_counts_the_passes_over_noisy_states() -> None:
    """A call takes 14.9 s on two busy cores, and a run has 6; by its products alone it is 15 s.

    The verification by a density matrix takes 1 s.
    """
    case = {
        "kind": "statevector", "circuit": {"name": "random", "qubits": 8, "depth": 3},
        "shots": 200_000, "noise": {"depolarising": 0.01}, "precisions": ["fp64"],
    }  # fmt: skip
    study = load_study({"device": "cpu", "workloads": {"x": {**case, "baselines": "none"}}})
    assert 6 * 10 < estimate(study, "x", "run")[1] < 6 * 30
    assert estimate(study, "x", "verify")[1] < 5
