"""The parameters of a circuit's evolution."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from workflow.config.answer_case import AnswerCase
from workflow.config.circuit import Circuit
from workflow.config.file_input import DatasetRef, FileInput


class StatevectorInput(FileInput):
    """The state to begin with, in an HDF5 file."""

    state: DatasetRef


class StatevectorCase(AnswerCase):
    """The evolution of a state of n qubits by a circuit, its gates fused.

    Basis states are numbered as in Qiskit: qubit 0 is the least significant bit.
    """

    kind: Literal["statevector"]
    circuit: Circuit = Field(description="The gates.")
    fuse: Literal["auto"] | Annotated[int, Field(ge=1, le=10)] = Field(
        "auto",
        description="Largest fused gate in qubits; with `auto` each precision and peer has the "
        "fusion of the least predicted time on its device.",
    )
    initial: Literal["zero", "random"] = Field(
        "zero", description="State to begin with: |0...0>, or one drawn from the seed."
    )
    input: StatevectorInput | None = Field(None, description="State to begin with from a file.")

    @model_validator(mode="after")
    def _one_state(self) -> StatevectorCase:
        if self.input is not None and "initial" in self.model_fields_set:
            raise ValueError("initial must not be given beside input: the data are there")
        return self
