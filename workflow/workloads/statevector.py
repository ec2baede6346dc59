"""Quantum state evolution: psi <- U psi for each fused gate of a circuit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from argand import Device, Precision
from argand.circuits import prepared_gates
from argand.gate_costs import gate_costs
from argand.gate_forms import gate_form
from pydantic import Field, model_validator

from workflow import accuracy
from workflow.config.circuit import MOST_QUBITS, Circuit
from workflow.config.file_input import DatasetRef, FileInput
from workflow.methods import matrix_product, operands, peers
from workflow.methods.evolution import Multiply, evolve, evolve_in_fp64, plan_evolution
from workflow.methods.initial_states import random_state, zero_state
from workflow.methods.operands import Operand
from workflow.output import pictures
from workflow.storage.drawn import Drawn
from workflow.storage.inputs import InputError, source_checksum
from workflow.workloads.base import (
    Array,
    Coordinate,
    Implementation,
    Product,
    Shape,
    Staged,
    Workload,
    blank,
    register,
)
from workflow.workloads.case import Case

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from qiskit import QuantumCircuit

STATE = Operand("state", ("basis_state",))


class StatevectorInput(FileInput):
    """The state to begin with, in an HDF5 file."""

    state: DatasetRef


class StatevectorCase(Case):
    """The evolution of a state of n qubits by a circuit, its gates fused.

    Basis states are numbered as in Qiskit: qubit 0 is the least significant bit.
    """

    kind: Literal["statevector"]
    circuit: Circuit = Field(description="The gates.")
    fuse: int = Field(4, ge=1, le=10, description="Largest fused gate in qubits.")
    initial: Literal["zero", "random"] = Field(
        "zero", description="State to begin with: |0...0>, or one drawn from the seed."
    )
    input: StatevectorInput | None = Field(None, description="State to begin with from a file.")

    @model_validator(mode="after")
    def _one_state(self) -> StatevectorCase:
        if self.input is not None and "initial" in self.model_fields_set:
            raise ValueError("initial must not be given beside input: the data are there")
        return self


@register
class Statevector(Workload):
    """One circuit on one state."""

    kind: ClassVar[str] = "statevector"
    case_type: ClassVar[type[Case]] = StatevectorCase
    case: StatevectorCase

    def circuit(self) -> QuantumCircuit:
        """The circuit of the case. Raises CircuitError."""
        from workflow.methods import circuits

        given = self.case.circuit
        if given.file is not None:
            circuit = circuits.load_circuit(given.file)
            if not 1 <= circuit.num_qubits <= MOST_QUBITS:
                raise circuits.CircuitError(
                    f"circuit.file: {given.file} has {circuit.num_qubits} qubits; "
                    f"there must be 1 to {MOST_QUBITS}"
                )
            return circuit
        rng = self.rng() if given.seed is None else np.random.default_rng(given.seed)
        if given.name is None or given.qubits is None:
            raise circuits.CircuitError("circuit must have either file or name")
        return circuits.named_circuit(given.name, given.qubits, given.depth, rng)

    def check(self) -> None:
        """Raise CircuitError or InputError for a circuit that cannot be evolved or read."""
        from workflow.methods import circuits

        circuit = self.circuit()
        circuits.fuse(circuit, self.case.fuse)
        self._check_state(circuit.num_qubits)

    def _check_state(self, qubits: int) -> None:
        if self.case.input is not None:
            (length,) = operands.headers(self.case.input, [STATE])["state"].shape
            if length != 2**qubits:
                raise InputError(
                    f"input.state must have {2**qubits} amplitudes for the circuit's {qubits} "
                    f"qubits, got {length}"
                )

    def staging(self, upstream: Path | None = None) -> Staged:
        """Operands state, and the fused gates as flat matrices, widths and targets in order."""
        from workflow.methods import circuits

        circuit = self.circuit()
        gates = circuits.fuse(circuit, self.case.fuse)
        self._check_state(circuit.num_qubits)
        data, drawn, attributes = self._initial_state(2**circuit.num_qubits)
        if self.case.circuit.file is not None:
            attributes["circuit_sha256"] = source_checksum(self.case.circuit.file)
            attributes["circuit"] = str(self.case.circuit.file)
        attributes["gates_before_fusion"] = circuit.size()
        matrices = [gate.matrix.reshape(-1) for gate in gates]
        targets = [target for gate in gates for target in gate.targets]
        data |= {
            "matrices": np.concatenate([*matrices, np.empty(0, np.complex128)]),
            "widths": np.array([len(gate.targets) for gate in gates], np.int64),
            "targets": np.array(targets, np.int64),
        }
        axes = {"state": STATE.axes, "matrices": ("entry",)}
        axes |= {"widths": ("gate",), "targets": ("target",)}
        return Staged(data, axes, {}, attributes, drawn)

    def outline(self, upstream: Workload | None = None) -> Staged:
        """See `Workload.outline`; the gates are counted before they are fused."""
        circuit = self.circuit()
        gates, width = circuit.size(), self.case.fuse
        source = self.case.input
        data = {
            "state": blank((2**circuit.num_qubits,), np.complex128)
            if source is None
            else operands.outline(source, [STATE])["state"],
            "matrices": blank((gates * 4**width,), np.complex128),
            "widths": blank((gates,), np.int64, width),
            "targets": blank((gates * width,), np.int64),
        }
        axes = {"state": STATE.axes, "matrices": ("entry",)}
        return Staged(data, {**axes, "widths": ("gate",), "targets": ("target",)})

    def _initial_state(
        self, amplitudes: int
    ) -> tuple[dict[str, Array], dict[str, Drawn], dict[str, Any]]:
        """The state as an operand in memory, or as one that is drawn; and the attributes."""
        source = self.case.input
        if source is None and self.case.initial == "zero":
            return {}, {"state": zero_state(amplitudes)}, {"seed": self.seed}
        if source is None:
            # A stream of its own: the circuit's random numbers do not depend on the state's.
            return (
                {},
                {"state": random_state(amplitudes, partial(self.rng, 1))},
                {"seed": self.seed},
            )
        data = operands.read_operands(source, [STATE])
        attributes = operands.provenance(source, data)
        if not self.case.allow_nonfinite:
            operands.refuse_nonfinite(data, attributes)
        return data, {}, attributes

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """batch gates on n amplitudes: 8 2^w n operations each, the state read and written."""
        widths = staged.operands["widths"]
        n, gates = staged.operands["state"].size, len(widths)
        values = 2 * gates * n + staged.operands["matrices"].size
        return Shape(
            flops=8.0 * n * float(np.sum(2.0**widths)),
            bytes_moved=values * operands.complex_bytes(precision),
            batch=gates,
            n=n,
        )

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Our kernel for each fused gate; what each needs beside the state is there before."""
        qubits, targets = _qubits(staged), _targets(staged)
        matrices = _matrices(staged)
        forms = [gate_form(qubits, *gate) for gate in zip(matrices, targets, strict=True)]
        algorithm = "gates in place"
        if device.backend == "cpu":
            algorithm += f", {matrix_product.gemm_algorithm(precision, device)}"

        ready: list[Callable[[Any], None]] = []

        def compute(given: Mapping[str, Any]) -> Any:
            state = given["state"].copy()
            if not ready:  # at the first call, which is not timed: the device holds the state then
                ready.append(prepared_gates(state, forms, precision))
            ready[0](state)
            return state

        def prepare(given: Mapping[str, Array]) -> Mapping[str, Array]:
            return operands.cast({"state": given["state"]}, precision)

        costs = gate_costs(precision, device)
        item = operands.complex_bytes(precision)
        predicted = 1e6 * sum(costs.of_form(qubits, form, item) for form in forms)
        return Implementation("argand", precision, algorithm, compute, prepare, predicted)

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """The same steps with NumPy's product on the CPU, with cuBLAS's on a GPU."""
        available = [
            self._implementation(peer.name, peer.precision, peer.algorithm, staged, peer.multiply)
            for peer in peers.product_peers(device)
        ]
        return peers.choose(available, self.case, "product")

    def _implementation(
        self, name: str, precision: Precision, algorithm: str, staged: Staged, multiply: Multiply
    ) -> Implementation:
        # The targets stay on the host: they decide what is launched.
        evolution = plan_evolution(_qubits(staged), _targets(staged))

        def compute(given: Mapping[str, Any]) -> Any:
            return evolve(given["state"], given["matrices"], evolution, multiply)

        def prepare(given: Mapping[str, Array]) -> Mapping[str, Array]:
            return operands.cast({key: given[key] for key in ("state", "matrices")}, precision)

        return Implementation(name, precision, algorithm, compute, prepare)

    def reference(self, staged: Staged) -> accuracy.StateReference:
        """The same gates in fp64 by `numpy.tensordot`."""
        names = ("state", "matrices", "widths", "targets")
        final = evolve_in_fp64(*(staged.operands[name] for name in names))
        return accuracy.state_reference(final)

    def assess(
        self,
        staged: Staged,
        reference: accuracy.StateReference,
        result: Array,
        precision: Precision,
        device: str,
    ) -> accuracy.Accuracy:
        """See `accuracy.assess_state`."""
        widths = [int(width) for width in staged.operands["widths"]]
        return accuracy.assess_state(reference, result, precision, widths=widths, backend=device)

    def product(self, staged: Staged, result: Array) -> Product:
        """The amplitudes of the basis states."""
        qubits = _qubits(staged)
        numbers = Coordinate(
            np.arange(2**qubits), "", f"basis state of {qubits} qubits, qubit 0 least significant"
        )
        return Product(
            "amplitude", result, STATE.axes, {STATE.axes[0]: numbers}, f"{self.name}: final state"
        )

    def picture(self, product: Product, axes: Axes) -> None:
        """Probabilities of the 16 likeliest basis states, in the order of their numbers."""
        probability = pictures.power(product.data)
        shown = min(16, probability.size)
        likeliest = np.sort(np.argsort(-probability, kind="stable")[:shown])
        axes.bar(np.arange(shown), probability[likeliest])
        axes.set_xticks(
            np.arange(shown), [f"|{number}⟩" for number in likeliest], rotation=60, ha="right"
        )
        axes.set_xlabel(f"basis state (the {shown} likeliest of {probability.size})")
        axes.set_ylabel("probability")


def _qubits(staged: Staged) -> int:
    return int(staged.operands["state"].size).bit_length() - 1


def _matrices(staged: Staged) -> list[Array]:
    """The matrices gate by gate, (2^w, 2^w) each."""
    orders = 2 ** np.asarray(staged.operands["widths"], np.int64)
    ends = np.cumsum(orders**2)
    pieces = np.split(staged.operands["matrices"], ends[:-1]) if len(ends) else []
    return [piece.reshape(order, order) for piece, order in zip(pieces, orders, strict=True)]


def _targets(staged: Staged) -> list[list[int]]:
    """The targets gate by gate."""
    ends = np.cumsum(staged.operands["widths"])
    pieces = np.split(staged.operands["targets"], ends[:-1]) if len(ends) else []
    return [[int(target) for target in piece] for piece in pieces]
