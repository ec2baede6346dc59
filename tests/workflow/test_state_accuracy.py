"""States: references, bounds and verdicts of evolved state vectors."""

import numpy as np
import pytest
from argand import PRECISIONS, gemm

from workflow.accuracy import (
    assess_state,
    state_reference,
)

NAMES = list(PRECISIONS)


def normal(rng, *shape, dtype=np.complex64):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


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
        gates = self.gates(rng, 3, 9)
        reference = state_reference(evolve(state, gates, "fp64"))
        row = PRECISIONS[precision]
        result = evolve(state.astype(row.output), gates, precision)
        accuracy = assess_state(reference, result, row, widths=[3] * 9, backend="cpu")
        assert accuracy.verified, accuracy.reason
        assert accuracy.rel_frobenius <= accuracy.bound
        assert accuracy.fidelity == pytest.approx(1, abs=accuracy.bound**2 + 1e-9)
        assert accuracy.norm_drift <= accuracy.bound

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
        assert turned.fidelity == pytest.approx(1)
        assert "norm_drift" in assessed(state * 1.001).reason
        assert "1 - fidelity" in assessed(np.roll(state, 1)).reason
        broken = state.copy()
        broken[3] = np.nan
        assert not assessed(broken).verified
        assert not assessed(0 * state).verified

    def test_a_rounded_state_is_no_reference(self):
        with pytest.raises(ValueError, match="dtype must be complex128, got complex64"):
            state_reference(np.ones(2, np.complex64))
