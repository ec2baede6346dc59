"""The keys of readout: what a state is asked for in place of its amplitudes."""

from __future__ import annotations

import math
from typing import Annotated

from argand.readout.problem import MAX_SHOTS
from pydantic import Field, model_validator

from workflow.config.case import Case
from workflow.config.model import Model
from workflow.config.text_forms import text_like

READOUTS = ("shots", "observables", "probabilities")
_MAX_OUTCOMES = 30
"""Qubits of marginal probabilities at most: 8 GiB of them."""
PauliString = Annotated[
    str, text_like("^[IXYZ]+$", "'ZIX' of the letters I, X, Y and Z", longest=64)
]


class Observable(Model):
    """A Pauli string times a number."""

    pauli: PauliString = Field(description="A letter for each qubit, the highest first.")
    coefficient: float = Field(
        1.0, allow_inf_nan=False, description="Factor of its expectation value."
    )

    @model_validator(mode="after")
    def _some(self) -> Observable:
        if not math.isfinite(self.coefficient) or self.coefficient == 0:
            raise ValueError(f"coefficient must be finite and not 0, got {self.coefficient}")
        return self


class ReadoutCase(Case):
    """A state that may be asked for one kind of readout."""

    shots: int | None = Field(
        None, ge=1, le=MAX_SHOTS,
        description="Number of measurements of all qubits: the product is counts of basis states "
        "in place of amplitudes. Where a file measures into classical bits, these stand beside the "
        "counts (`classical_bits`), registers apart by a space, the last first. The seed is the "
        "study's.",
    )  # fmt: skip
    observables: list[PauliString | Observable] | None = Field(
        None, min_length=1, max_length=100_000,
        description="Pauli strings such as `ZZI`, the highest qubit's letter first, or `{pauli: "
        "ZZI, coefficient: 0.5}`: the product is their expectation values, in place of amplitudes. "
        "Measurements at the end of a circuit are left out of its state.",
    )  # fmt: skip
    probabilities: list[Annotated[int, Field(ge=0)]] | None = Field(
        None, min_length=1, max_length=_MAX_OUTCOMES,
        description="Qubits: the product is the probabilities of their values, summed over the "
        "others, in place of amplitudes. Bit j of an outcome is that of the j-th qubit.",
    )  # fmt: skip

    @property
    def readout(self) -> str | None:
        """The key of what is asked for; None for the amplitudes."""
        return next((name for name in READOUTS if getattr(self, name) is not None), None)

    def paulis(self) -> list[tuple[str, float]]:
        """Return the Pauli strings and their coefficients."""
        return [
            (one, 1.0) if isinstance(one, str) else (one.pauli, one.coefficient)
            for one in self.observables or ()
        ]

    @model_validator(mode="after")
    def _one_readout(self) -> ReadoutCase:
        given = [name for name in READOUTS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(given)} must not be given together: a workload has one product, so "
                "name a workload for each"
            )
        if self.probabilities is not None and len({*self.probabilities}) < len(self.probabilities):
            raise ValueError(f"probabilities must be different qubits, got {self.probabilities}")
        return self
