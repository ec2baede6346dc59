"""States: references, bounds and verdicts of evolved state vectors."""

import numpy as np
import pytest
from argand import PRECISIONS, gemm
from argand.rounding import round_operand

from tests.kernels.gates.gate_cases import random_unitary
from tests.normal import normal
from tests.verdicts import is_right
from workflow.accuracy.gate_deviations import evolution_probable, fused_deviation, known_deviation
from workflow.accuracy.state_accuracy import assess_state, state_reference
from workflow.passes import Applied, applied_matrices

NAMES = list(PRECISIONS)


def evolve(state, gates, precision):
    for gate in gates:
        state = gemm(state.reshape(-1, len(gate)), gate, op_b="T", precision=precision)
        state = np.ascontiguousarray(state.T)
    return state.reshape(-1)


class TestStates:
    def gates(self, rng, width, count):
        """Random unitary gates, and widths; the state's axes turn by one gate at each."""
        return [
            np.linalg.qr(normal(rng, 2**width, 2**width, dtype=complex))[0] for _ in range(count)
        ]

    @pytest.mark.parametrize("precision", NAMES)
    def test_gates_are_within_the_bound(self, precision):
        rng = np.random.default_rng(13)
        state = normal(rng, 2**12, dtype=complex)
        state /= np.linalg.norm(state)
        gates = self.gates(rng, 4, 9)  # narrower ones are summed in fp32
        reference = state_reference(evolve(state, gates, "fp64"))
        row = PRECISIONS[precision]
        result = evolve(state.astype(row.output), gates, precision)
        accuracy = assess_state(reference, result, row, widths=[4] * 9, backend="cpu")
        assert is_right(accuracy, precision), accuracy.reason
        assert accuracy.rel_frobenius <= accuracy.bound
        assert accuracy.measures["fidelity"] == pytest.approx(1, abs=accuracy.bound**2 + 1e-9)
        assert accuracy.measures["norm_drift"] <= accuracy.bound

    def test_a_state_of_another_norm_does_not_drift(self):
        state = 2 * normal(np.random.default_rng(15), 2**8, dtype=complex)
        result = state.astype(np.complex64)
        reference = state_reference(state)
        accuracy = assess_state(reference, result, PRECISIONS["fp32"], widths=[2], backend="cpu")
        assert accuracy.verified
        assert accuracy.measures["norm_drift"] < 1e-7

    @pytest.mark.parametrize(
        ("precision", "scale"),
        [
            ("fp32", 1e-40), ("fp32", 1e-42), ("tf32", 1e-40), ("bf16", 1e-42),
            ("fp64", 1e-320), ("fp64", 1e-200), ("fp64", 1e200), ("fp64", 1e300),
        ],
    )  # fmt: skip
    def test_amplitudes_of_any_size(self, precision, scale):
        """Neither what underflows nor squares beyond fp64's range make a right state wrong.

        Nor do they hide a wrong one, but where all of it may underflow.
        """
        rng, row = np.random.default_rng(16), PRECISIONS[precision]
        state = (scale * normal(rng, 2**8, dtype=complex)).astype(row.output)
        gates = self.gates(rng, 4, 3)
        reference = state_reference(evolve(state.astype(complex), gates, "fp64"))

        def assessed(result):
            return assess_state(reference, result, row, widths=[4] * 3, backend="cpu")

        right = assessed(evolve(state, gates, precision))
        assert right.verdict in ("verified", "unproven"), right.reason
        doubled = assessed(evolve(state, [2 * gates[0], *gates[1:]], precision))
        assert doubled.verdict == ("unproven" if precision in ("tf32", "bf16") else "wrong")
        if scale in (1e-200, 1e200, 1e300):
            assert right.verified
            assert right.rel_frobenius < 1e-14
            wrong = assessed(evolve(state, [gates[0] * (1 + 1e-9), *gates[1:]], precision))
            assert wrong.rel_frobenius == pytest.approx(1e-9, rel=1e-3)
            assert wrong.verdict == "wrong"

    def test_wrong_states_fail_and_a_phase_is_wrong(self):
        rng = np.random.default_rng(14)
        state = normal(rng, 2**8, dtype=complex)
        state /= np.linalg.norm(state)
        reference = state_reference(state)

        def assessed(result):
            return assess_state(
                reference, result, PRECISIONS["fp32"], widths=[2] * 5, backend="cpu"
            )

        assert assessed(state.astype(np.complex64)).verified
        turned = assessed(state * 1j)
        assert not turned.verified
        assert turned.measures["fidelity"] == pytest.approx(1)
        assert "norm_drift" in assessed(state * 1.001).reason
        assert "1 - fidelity" in assessed(np.roll(state, 1)).reason
        broken = state.copy()
        broken[3] = np.nan
        assert not assessed(broken).verified
        assert not assessed(0 * state).verified

    def test_a_rounded_state_is_no_reference(self):
        with pytest.raises(ValueError, match="dtype must be complex128, got complex64"):
            state_reference(np.ones(2, np.complex64))


class TestRepeatedMatrices:
    """A matrix that is applied again moves the state in the same direction again."""

    def moved(self, matrices, precision):
        """Return how far rounding of the matrices moves a random state of as many qubits."""
        rng = np.random.default_rng(31)
        exact = rounded = normal(rng, len(matrices[0]), dtype=complex)
        for matrix in matrices:
            exact = matrix @ exact
            rounded = round_operand(matrix.astype(precision.output), precision) @ rounded
        return np.linalg.norm(rounded - exact) / np.linalg.norm(exact)

    @pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
    def test_repeats_add_up_linearly_and_different_ones_do_not(self, precision):
        rng, row, count = np.random.default_rng(30), PRECISIONS[precision], 64
        phases = [np.diag(np.exp(2j * np.pi * rng.random(16))) for _ in range(count)]
        for matrices in (phases, count * phases[:1]):
            error = self.moved(matrices, row)
            applied = applied_matrices(matrices, count * [4])
            assert error / 2 <= known_deviation(matrices, row) <= 2 * error
            assert error <= fused_deviation(applied, row)
        # Not idle: as different matrices the same ones would be far beyond.
        assert error > 2 * fused_deviation(count * [Applied(4, 1, 1)], row)

    def test_what_is_counted(self):
        rng = np.random.default_rng(33)
        full, swap = random_unitary(rng, 2), np.eye(4)[[0, 2, 1, 3]]
        nearly = swap + np.where(swap == 1, 1e-15, 0)  # the same, fused in another order
        assert applied_matrices([full, swap, nearly, 1j * swap], [2, 2, 2, 3]) == [
            Applied(2, 4, 1), Applied(2, 1, 2), Applied(2, 1, 2), Applied(3, 1, 1)
        ]  # fmt: skip

    @pytest.mark.parametrize("backend", ["cpu", "cuda"])
    @pytest.mark.parametrize("precision", ["fp32", "3xtf32", "3xfp16"])
    def test_products_with_zero_cost_nothing(self, precision, backend):
        row = PRECISIONS[precision]

        def probable(terms):
            return evolution_probable(
                row, 50 * [Applied(6, terms, 1)], backend, amplitudes=1 << 20, matrices=0.0
            )

        found = [probable(terms) for terms in (1, 2, 8, 64)]
        for part in (0, 1):
            sizes = [one[part] for one in found]
            assert sizes == sorted(sizes)
            assert sizes[-1] > 2 * sizes[0]
