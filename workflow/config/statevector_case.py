"""The parameters of a circuit's evolution."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from workflow.config.circuit import Circuit
from workflow.config.file_input import DatasetRef, FileInput
from workflow.config.model import Model
from workflow.config.readout_case import READOUTS, ReadoutCase

MAX_TRAJECTORIES = 10_000_000


_SAMPLED_TOLERANCE = 0.1
"""Tolerance of means over trajectories: what is proved of them, a digit."""


class StatevectorInput(FileInput):
    """The state to begin with, in an HDF5 file."""

    state: DatasetRef


Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Noise(Model):
    """Noise after each gate on each of its qubits, as trajectories of pure states."""

    depolarising: Probability = Field(
        0.0, description="Probability that a qubit becomes a mixture of |0> and |1>."
    )
    damping: Probability = Field(0.0, description="Probability that a qubit falls from |1> to |0>.")
    trajectories: int | None = Field(
        None, ge=2, le=MAX_TRAJECTORIES,
        description="Number of trajectories, for observables and probabilities; each shot has a "
        "trajectory of its own. Standard errors fall with the root of their number; from about "
        "5000 on the mean is proved to a digit.",
    )  # fmt: skip

    @model_validator(mode="after")
    def _some(self) -> Noise:
        if not {"depolarising", "damping"} & self.model_fields_set:  # a sweep may begin with 0
            raise ValueError("noise must have a depolarising or damping probability")
        return self


class StatevectorCase(ReadoutCase):
    """The evolution of a state of n qubits by a circuit, its gates fused.

    Basis states are numbered as in Qiskit: qubit 0 is the least significant bit.
    """

    needs_finite: ClassVar[str] = "amplitudes with NaN or Inf are no state"
    kind: Literal["statevector"]
    circuit: Circuit = Field(description="The gates.")
    fuse: Literal["auto"] | Annotated[int, Field(ge=1, le=10)] = Field(
        "auto",
        description="Largest fused gate in qubits; with `auto` each precision and peer takes the "
        "fusion with the least predicted time on its device.",
    )
    initial: Literal["zero", "random"] = Field(
        "zero", description="Initial state: |0...0>, or one drawn from the seed."
    )
    input: StatevectorInput | None = Field(None, description="Initial state from a file.")
    noise: Noise | None = Field(
        None,
        description="Averages observables or probabilities over a noisy circuit, or draws each "
        "shot from a run of it. It begins with |0...0>, gate by gate. `tolerance` is then 0.1 "
        "where not given, since a sample errs more than arithmetic.",
    )

    @property
    def accepted_error(self) -> float:
        """Largest relative Frobenius error for `auto`: of a sample 0.1 where no other is given."""
        sampled = self.noise is not None and "tolerance" not in self.model_fields_set
        return _SAMPLED_TOLERANCE if sampled else self.tolerance

    @model_validator(mode="after")
    def _one_state(self) -> StatevectorCase:
        if self.input is not None and "initial" in self.model_fields_set:
            raise ValueError("initial must not be given beside input: the data are there")
        return self

    @model_validator(mode="after")
    def _noise_is_read_out(self) -> StatevectorCase:
        if self.noise is None:
            return self
        if self.readout is None:
            raise ValueError(f"noise must have one of {', '.join(READOUTS)} to read out, got none")
        if self.shots is None and self.noise.trajectories is None:
            raise ValueError(f"noise.trajectories must be given with {self.readout}, got none")
        if self.shots is not None:
            self._check_noisy_shots(self.shots, self.noise)
        given = [name for name in ("fuse", "initial", "input") if name in self.model_fields_set]
        if given:
            raise ValueError(
                f"{' and '.join(given)} must not be given with noise: gates are applied one by "
                "one to |0...0>"
            )
        return self

    @staticmethod
    def _check_noisy_shots(shots: int, noise: Noise) -> None:
        if noise.trajectories is not None:
            raise ValueError(
                "noise.trajectories must not be given with shots, got "
                f"{noise.trajectories}: each of the {shots} shots has a trajectory of its own"
            )
        if not 2 <= shots <= MAX_TRAJECTORIES:
            raise ValueError(
                f"shots must be from 2 to {MAX_TRAJECTORIES} with noise, got {shots}: each has a "
                "trajectory of its own"
            )
