"""Readout of a noisy circuit: `statevector` with ``noise``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import Device, Gate, Precision, run_trajectories

from workflow.accuracy import Accuracy
from workflow.accuracy.noise_accuracy import NoiseReference, assess_means, least_trajectories
from workflow.circuits import density_matrix, fused_gates
from workflow.circuits import trajectory_readout as means
from workflow.circuits.fused_gates import TargetedGate
from workflow.circuits.registers import qubits_of
from workflow.data import Array, Coordinate, Product, Staged, blank, is_blank
from workflow.files.input_error import InputError
from workflow.implementation import Implementation, OtherWork, Shape
from workflow.inputs import operands
from workflow.workloads.base import NOTHING
from workflow.workloads.state_readout import StateReadout

if TYPE_CHECKING:
    from workflow.config.statevector_case import Noise

_GATE_TERMS, _DEPOLARISING_TERMS, _DAMPING_TERMS = 2, 2, 4
"""Terms of `OtherWork` for an amplitude and a qubit of a gate: in fp64 on two cores of an AMD EPYC,
3 to 10 qubits took 2.4 to 5.7 ns without noise or a depolarising probability of 0.01, damping 5 to
9 ns more, both at 0.3 up to 25 ns."""


class NoisyReadout(StateReadout):
    """Means over trajectories of expectation values or marginals, or counts; with standard errors.

    The result is (2, values + 1): means, then standard errors; the last value is the fidelity to
    the state without noise. Values of counts are the shares of all basis states.
    """

    reference_repeats: ClassVar[bool] = False  # it has a density matrix

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise InputError also for more qubits than the density matrix may have, or too few runs.

        Too few are trajectories that prove nothing, unless ``allow_unproven`` takes their means.
        Shots whose classical bits are not the measured qubits at the end are refused, too.
        """
        super().check(upstream)
        size = self._size()
        qubits = size.qubits
        if self.case.shots is not None and (changed := size.acted_on_after):
            raise InputError(
                f"noise: gates act on qubits {list(changed)} after their measurement, and their "
                "noise changes the qubits, which are then not the classical bits of shots; "
                "measure after all gates on a qubit"
            )
        if qubits > density_matrix.MAX_QUBITS:
            raise InputError(
                f"noise: the circuit must have at most {density_matrix.MAX_QUBITS} qubits, because"
                f" means are verified against its density matrix, got {qubits}; "
                "argand.run_trajectories takes more"
            )
        if self.case.observables is not None:
            values = len(self.case.observables)
        else:
            values = 2 ** len(self.case.probabilities or range(qubits))
        least = least_trajectories(self.case.readout or "", values)
        if self.trajectories < least and not self.case.allow_unproven:
            key = "noise.trajectories" if self.case.shots is None else "shots"
            raise InputError(
                f"{key} must be at least {least} to prove a digit of {values} means, got "
                f"{self.trajectories}; to have what is unproven, name a precision and set "
                "allow_unproven: true"
            )

    @property
    def noise(self) -> Noise:
        """The case's noise."""
        assert self.case.noise is not None
        return self.case.noise

    @property
    def trajectories(self) -> int:
        """Number of trajectories: of counts one a shot."""
        found = self.case.shots or self.noise.trajectories
        assert found is not None
        return found

    def result_shape(self, outline: Staged) -> tuple[int, ...]:
        """See the class."""
        shots = self.case.shots is not None
        values = 2 ** qubits_of(outline) if shots else super().result_shape(outline)[0]
        return (2, values + 1)

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return the work of all trajectories, each gate by itself.

        States stay in a chip's memory.
        """
        found = super().shape(staged, precision)
        count = self.trajectories
        written = operands.complex_bytes(precision) * staged.operands["state"].size * count
        return replace(found, flops=found.flops * count, bytes_moved=float(written))

    def other_work(self, outline: Staged) -> OtherWork:
        """Return the terms of a CPU's passes over the states of all trajectories.

        For each qubit of a gate they are the gate's, and those of channels with a probability.
        """
        amplitudes = float(outline.operands["state"].size * self.trajectories)
        passes = _GATE_TERMS
        passes += _DEPOLARISING_TERMS if self.noise.depolarising else 0
        passes += _DAMPING_TERMS if self.noise.damping else 0
        return OtherWork(terms=amplitudes * passes * outline.operands["targets"].size)

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return means of the readout of `argand.run_trajectories`, some at a time."""
        qubits, gates = qubits_of(staged), fused_gates.gates_in(staged.operands)
        given = [Gate(gate.matrix, gate.targets) for gate in gates]
        pure = density_matrix.pure_state(qubits, gates)
        readout = means.together([self._of_states(gates), means.overlap(pure)])
        seed, noise = self.shots_seed(), self.noise

        def states(first: int, some: int) -> Any:
            return run_trajectories(
                qubits, given, some, seed=seed, depolarising=noise.depolarising,
                damping=noise.damping, precision=precision, device=device, first=first,
            )  # fmt: skip

        def compute(_: Mapping[str, Any]) -> Any:
            return means.averaged(states, readout, self.trajectories, 2**qubits)

        def prepare(given: Mapping[str, Array]) -> Mapping[str, Array]:
            return operands.cast({"state": given["state"]}, precision)

        algorithm = f"{self.trajectories} trajectories gate by gate, then {self.case.readout}"
        return Implementation.ours(precision, algorithm, compute, prepare)

    def _of_states(self, gates: Sequence[TargetedGate]) -> means.Readout:
        if self.case.observables is not None:
            return means.expectation(self.case.paulis())
        if self.case.shots is not None:
            return means.outcomes(self.shots_seed(), _channels(gates))
        return means.marginals(self.case.probabilities or ())

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return none: no peer draws the same trajectories."""
        return []

    def reference(self, staged: Staged) -> NoiseReference:  # type: ignore[override]
        """Return the density matrix in fp64 by NumPy, and its readout."""
        qubits, gates = qubits_of(staged), fused_gates.gates_in(staged.operands)
        rho = density_matrix.noisy_density(
            qubits, gates, self.noise.depolarising, self.noise.damping
        )
        pure = density_matrix.pure_state(qubits, gates)
        fidelity = float(np.vdot(pure, rho @ pure).real)
        if self.case.observables is not None:
            strings, coefficients = zip(*self.case.paulis(), strict=True)
            values, scale = density_matrix.expectation(rho, strings), np.array(coefficients)
        else:
            values = density_matrix.marginals(rho, self.case.probabilities or range(qubits))
            scale = np.ones_like(values)
        return NoiseReference(
            self.case.readout or "", qubits, self.trajectories, _channels(gates), values, scale,
            fidelity,
        )  # fmt: skip

    def assess(
        self,
        staged: Staged,
        reference: NoiseReference,  # type: ignore[override]
        result: Array,
        precision: Precision,
        device: str,
    ) -> Accuracy:
        """See `assess_means`."""
        return assess_means(reference, result, precision, self.bounds(staged, precision, device))

    def product(self, staged: Staged, result: Array) -> Product:
        """Return means or counts, standard errors beside them, and the fidelity in the title."""
        if self.case.shots is not None:
            found, spread, what = self._counts(staged, result, self.case.shots)
            title = f"{found.title}, each on a trajectory of its own"
        else:
            found, spread, what = super().product(staged, result[0, :-1]), result[1, :-1], "mean"
            title = f"{found.title}, means of {self.trajectories} trajectories"
        errors = Coordinate(spread, "", f"standard error of the {what}", found.axes)
        if not is_blank(result):
            title += f", fidelity {result[0, -1]:.4g} +- {result[1, -1]:.1g} to the pure state"
        return replace(
            found, title=title, coordinates={**found.coordinates, "standard_error": errors}
        )

    def _counts(self, staged: Staged, result: Array, shots: int) -> tuple[Product, Array, str]:
        """Return the counts of the basis states that were found, and their standard errors."""
        if is_blank(result):
            most = (min(shots, result.shape[1] - 1),)
            return (
                self.counted(staged, blank(most, np.int64), blank(most, np.int64)),
                blank(most, float),
                "count",
            )
        counts = np.rint(shots * result[0, :-1]).astype(np.int64)
        (found,) = np.nonzero(counts)
        return self.counted(staged, found, counts[found]), shots * result[1, found], "count"


def _channels(gates: Sequence[TargetedGate]) -> int:
    """Return channels that a trajectory goes through: two for each qubit of a gate."""
    return 2 * sum(len(gate.targets) for gate in gates)
