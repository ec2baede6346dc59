"""Counts, expectation values and marginals of a circuit's state, in place of its amplitudes."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import cpu
from matplotlib.figure import Figure

from tests.covers import EXHAUSTIVE
from tests.verdicts import COARSE, is_right
from tests.workflow.workloads.test_statevector_workload import OUTCOMES
from workflow.accuracy import readout_accuracy
from workflow.files.input_error import InputError
from workflow.steps.pieces import sizes
from workflow.workloads import KINDS, workload_of
from workflow.workloads.state_readout import StateReadout

RANDOM = {"name": "random", "qubits": 7, "depth": 6, "seed": 2}
GHZ = {"name": "ghz", "qubits": 5}
KEYS: dict[str, dict[str, Any]] = {
    "shots": {"shots": 3000},
    "observables": {"observables": ["ZZIIIZZ", "XYIZIIX", {"pauli": "IIIIIXX", "coefficient": -2}]},
    "probabilities": {"probabilities": [6, 0, 3]},
}


def workload(circuit: dict[str, Any] = RANDOM, **keys: Any) -> StateReadout:
    kind = KINDS["statevector"]
    case = kind.case_type.model_validate({"kind": "statevector", "circuit": circuit, **keys})
    found = workload_of("s", case, 5)
    assert isinstance(found, StateReadout)
    return found


def computed(one: StateReadout, precision: str = "fp64") -> tuple[Any, Any]:
    """The staged operands, with the passes that were computed, and the result."""
    staged = one.stage()
    ours = one.argand(staged, PRECISIONS[precision], cpu())
    result = ours.compute(ours.prepare(staged.operands))
    return one.as_computed(staged, ours.plan_words), result


def other_results(readout: str, result: Any) -> list[Any]:
    """Wrong results: one value changed, and all of them in another order."""
    if readout == "shots":
        moved = result.copy()
        moved[1000:1500] = moved[1500]  # ascending, and some hundred shots elsewhere
        return [moved, result[::-1], result + 0.5, np.append(result[1:], 2.0**7)]
    changed = result.copy()
    changed[1] += 0.1
    return [changed, np.roll(result, 1), np.where(result == result[0], np.nan, result)]


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("readout", KEYS)
def test_every_precision_verifies_and_a_wrong_readout_does_not(
    readout: str, precision: str
) -> None:
    one, row = workload(**KEYS[readout]), PRECISIONS[precision]
    staged, result = computed(one, precision)
    reference = one.reference(staged)
    found = one.assess(staged, reference, result, row, "cpu")
    assert is_right(found, precision), found.reason
    assert result.shape == one.result_shape(staged)
    if readout != "observables":
        assert 0 <= found.measures["total_variation"] < 0.2
    for wrong in other_results(readout, result):
        accuracy = one.assess(staged, reference, wrong, row, "cpu")
        assert not accuracy.verified
        assert accuracy.verdict == "wrong" or precision in COARSE


@pytest.mark.parametrize("name", OUTCOMES if EXHAUSTIVE else ["adder_n10", "ising_n10"])
def test_published_circuits_are_counted_as_published(real_data: Path, name: str) -> None:
    """Each count is within what a right sampler exceeds with a probability of 1e-9 (Chernoff)."""
    shots = 200_000
    one = workload({"file": real_data / "qasm" / f"{name}.qasm"}, shots=shots)
    one.check()
    staged, result = computed(one, "fp32")
    product = one.product(staged, result)
    counts = dict(zip(product.coordinates["outcome"].values.tolist(), product.data, strict=True))
    assert product.data.sum() == shots
    for number, known in OUTCOMES[name].items():
        mean, limit = shots * known, np.log(2e9)
        allowed = (limit + np.sqrt(limit**2 + 8 * limit * mean)) / 2
        # Published to six decimals, and off by what fp32 errs.
        assert abs(counts.get(number, 0) - mean) <= allowed + shots * 2e-6
    if name == "adder_n10":
        assert list(counts) == [514]


def test_known_answers_of_a_ghz_state() -> None:
    strings = ["ZZIII", "XXXXX", "YYXXX", "ZIIII", "XIIII"]
    values = computed(workload(GHZ, observables=strings))[1]
    np.testing.assert_allclose(values, [1, 1, -1, 0, 0], atol=1e-14)
    np.testing.assert_allclose(
        computed(workload(GHZ, probabilities=[4, 0]))[1], [0.5, 0, 0, 0.5], atol=1e-14
    )
    outcomes = set(computed(workload(GHZ, shots=100))[1])
    assert outcomes == {0.0, 31.0}


def test_shots_count_toward_the_memory_of_jobs() -> None:
    one = workload(GHZ, shots=10**9)
    assert sizes(one, one.outline()).result == 8 * 10**9
    assert one.product_outline(one.outline()).data.shape == (32,)


def test_shots_are_verified_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the memory that is asked for: two numbers a shot, of the result and of the reference."""
    one, row = workload(shots=2**17), PRECISIONS["fp64"]
    staged, result = computed(one)
    whole = one.assess(staged, one.reference(staged), result, row, "cpu")
    monkeypatch.setattr(readout_accuracy, "_PIECE", 1 << 10)
    tracemalloc.start()
    try:
        found = one.assess(staged, one.reference(staged), result, row, "cpu")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 2 * result.nbytes + (1 << 20)
    assert found.error_limit == whole.error_limit
    assert found.measures == pytest.approx(whole.measures, abs=1e-12)
    result[1023] = 127  # the last one of a piece, above the first one of the next
    unordered = one.assess(staged, one.reference(staged), result, row, "cpu")
    assert "not in ascending order" in unordered.reason


def test_the_seed_decides_the_shots() -> None:
    again, other = (workload_of(name, workload(**KEYS["shots"]).case, 5) for name in "st")
    first = computed(workload(**KEYS["shots"]))[1]
    assert isinstance(again, StateReadout)
    assert isinstance(other, StateReadout)
    assert np.array_equal(first, computed(again)[1])
    assert not np.array_equal(first, computed(other)[1])


@pytest.mark.parametrize("readout", KEYS)
def test_the_product_says_what_stands_where(readout: str) -> None:
    one = workload(**KEYS[readout])
    staged, result = computed(one)
    product = one.product(staged, result)
    if readout == "shots":
        assert product.name == "counts"
        assert product.data.sum() == 3000
        assert (np.diff(product.coordinates["outcome"].values) > 0).all()
    elif readout == "observables":
        assert list(product.coordinates["observable"].values) == ["ZZIIIZZ", "XYIZIIX", "IIIIIXX"]
        factor = product.coordinates["coefficient"]
        assert list(factor.values) == [1, 1, -2]
        assert "which its expectation value here contains" in factor.long_name
    else:
        assert product.data.shape == (8,)
        assert product.data.sum() == pytest.approx(1)
    outlined = one.product_outline(one.outline())
    assert outlined.axes == product.axes
    assert outlined.data.size >= product.data.size
    axes = Figure().subplots()
    one.picture(product, axes)
    if readout == "observables":
        assert [text.get_text() for text in axes.get_xticklabels()][2] == "-2 IIIIIXX"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"observables": ["ZZ"]}, "observables: the Pauli string 'ZZ' has 2 letters, but the state "
         "has 5 qubits"),
        ({"probabilities": [5]}, r"probabilities: qubits must be different ones from 0 to 4"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_circuit_is_reported_before_a_job(
    keys: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        workload(GHZ, **keys).check()


def test_observables_of_qubits_that_are_measured_midway(tmp_path: Path) -> None:
    """A measured qubit that a gate acts on again has 0 in X and Y, the state without it has not."""
    path = tmp_path / "c.qasm"
    first = 'OPENQASM 2.0; include "qelib1.inc"; qreg q[2]; creg c[2]; h q[0]; '
    for behind in ("measure q[0] -> c[0]; cx q[0],q[1]; measure q -> c;", "cx q[0],q[1];"):
        path.write_text(first + behind)
        one = workload({"file": str(path)}, observables=["ZZ", "XI", "IZ"])
        one.check()
        np.testing.assert_allclose(computed(one)[1], [1, 0, 0], atol=1e-14)
    path.write_text(first + "measure q[0] -> c[0]; cx q[0],q[1]; measure q -> c;")
    for string in ("XX", "IY"):
        with pytest.raises(InputError, match=rf"'{string}' has X or Y on qubits \[0\], which"):
            workload({"file": str(path)}, observables=["ZZ", string]).check()
    path.write_text(first + "cx q[0],q[1]; measure q -> c;")
    last = workload({"file": str(path)}, observables=["XX"])
    last.check()
    np.testing.assert_allclose(computed(last)[1], [1], atol=1e-14)
