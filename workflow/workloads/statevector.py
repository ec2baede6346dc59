"""Quantum state evolution: psi <- U psi for each fused gate of a circuit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import Device, Precision, plan_circuit
from argand.gates.canonical import gate_form
from argand.gates.costs import gate_costs
from argand.gates.plan import MAX_WIDTH
from argand.gates.prepared_gates import prepared_gates
from argand.gates.sequences import SharedPass

from workflow.accuracy import Accuracy
from workflow.accuracy.state_accuracy import StateReference, assess_state, state_reference
from workflow.circuits import fused_gates
from workflow.circuits.evolution import evolve, plan_evolution
from workflow.circuits.exact_evolution import evolve_in_fp64
from workflow.circuits.fused_gates import TargetedGate
from workflow.circuits.initial_states import random_state, zero_state
from workflow.circuits.provenance import with_circuit
from workflow.circuits.registers import named_qubits, qubits_of
from workflow.circuits.resets import check_resets, first_resets
from workflow.config.case import Case
from workflow.config.readout_case import READOUTS
from workflow.config.statevector_case import StatevectorCase
from workflow.data import Array, Coordinate, Product, Staged, blank, numbered
from workflow.drawn import Drawn, Stretched
from workflow.figures import pictures
from workflow.files.input_error import InputError
from workflow.implementation import Implementation, Shape
from workflow.inputs import operand_values, operands
from workflow.inputs.operands import Operand
from workflow.passes import Applied, described, in_words, moved_widths, plan_described, with_passes
from workflow.storage.products import read_outline
from workflow.workloads import matrix_product
from workflow.workloads.base import NOTHING, Workload, log_uniform, register
from workflow.workloads.baselines import implementations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from qiskit import QuantumCircuit

    from workflow.circuits.circuit_size import CircuitSize

STATE = Operand("state", ("basis_state",))


@register
class Statevector(Workload):
    """One circuit on one state."""

    kind: ClassVar[str] = "statevector"
    operation: ClassVar[str] = "gates"
    caption: ClassVar[str] = (
        "The probabilities of the 16 likeliest basis states, in the order of their numbers; those "
        "of the others are smaller."
    )
    case_type: ClassVar[type[Case]] = StatevectorCase
    small: ClassVar[Mapping[str, Any]] = {
        "circuit": {"name": "random", "qubits": 7, "depth": 6}, "fuse": 3,
    }  # fmt: skip
    common: ClassVar[Mapping[str, Any]] = {
        "circuit": {"name": "qft", "qubits": 12}, "fuse": "auto",
    }  # fmt: skip
    result_like: ClassVar[str] = "state"
    variants: ClassVar[tuple[str, ...]] = (*READOUTS, "noise")
    case: StatevectorCase

    @classmethod
    def for_case(cls, case: StatevectorCase) -> type[Statevector]:
        """See `Workload.for_case`: the state, or what it is asked for."""
        if case.readout is None:
            return cls
        from workflow.workloads.state_readout import StateReadout

        return StateReadout.for_case(case)

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """See `Workload.drawn`."""
        name = str(rng.choice(["ghz", "qft", "random", "random"]))
        circuit: dict[str, Any] = {"name": name, "qubits": int(rng.integers(2, 11))}
        if name == "random":
            circuit["depth"] = log_uniform(rng, 2, 200)
        return {"circuit": circuit, "initial": str(rng.choice(["zero", "random"]))}

    @classmethod
    def drawn_variant(cls, rng: np.random.Generator, variant: str) -> dict[str, Any]:
        """See `Workload.drawn_variant`."""
        from workflow.workloads.state_readout import drawn_readout

        return drawn_readout(rng, variant, cls.drawn(rng))

    def circuit(self) -> QuantumCircuit:
        """Return the circuit of the case. Raises CircuitError."""
        from workflow.circuits import qiskit_circuits as circuits

        return circuits.circuit_of(self.case.circuit, self.rng())

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise CircuitError or InputError for a circuit that cannot be evolved or read."""
        from workflow.circuits import qiskit_circuits as circuits

        size = self._size()
        if (width := self._width()) is not None:
            circuits.check_matrices(sum(size.staged.values()), width, size.matrix_bytes)
        check_resets(size.resets, self.case)
        self._check_state(size.qubits, upstream)

    def _size(self) -> CircuitSize:
        """Return the circuit's size, found without its matrices; raises CircuitError."""
        from workflow.circuits import circuit_size

        return circuit_size.size_of(self.case.circuit, self._width())

    def _width(self) -> int | None:
        return None if self.case.fuse == "auto" else self.case.fuse

    def _gates(self, circuit: QuantumCircuit) -> list[TargetedGate]:
        """Return the gates as they are staged: fused to the case's width, or one by one."""
        from workflow.circuits import qiskit_circuits as circuits

        if self.case.fuse == "auto":
            return circuits.gates_of(circuit, MAX_WIDTH)
        return circuits.fuse(circuit, self.case.fuse)

    def _check_state(self, qubits: int, upstream: Mapping[str, Product]) -> None:
        if self.case.input is not None:
            for name, one in upstream.items():
                if one.data.dtype.kind != "c":
                    what = f"the product of {name} is {one.name}, {one.data.dtype}"
                    raise InputError(f"input.state must be complex amplitudes, but {what}")
            (length,) = operands.headers(self.case.input, [STATE], upstream)["state"].shape
            if length != (needed := 2**qubits):
                what = f"{needed} amplitudes for the circuit's {qubits} qubits"
                raise InputError(f"input.state must have {what}, got {length}")

    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return the operands state and gates, these as in `fused_gates`."""
        circuit = self.circuit()
        gates = self._gates(circuit)
        outlines = {name: read_outline(path) for name, path in upstream.items()}
        check_resets(first_resets(circuit), self.case)
        self._check_state(circuit.num_qubits, outlines)
        data, drawn, attributes = self._initial_state(2**circuit.num_qubits, upstream)
        if self.case.circuit.file is not None:
            attributes = with_circuit(attributes, self.case.circuit.file, circuit)
        attributes["gates_before_fusion"] = circuit.size()
        data |= fused_gates.as_operands(gates)
        return Staged(data, {"state": STATE.axes, **fused_gates.AXES}, {}, attributes, drawn)

    def outline(self, upstream: Mapping[str, Product] = NOTHING) -> Staged:
        """See `Workload.outline`; of a long circuit, fused gates are an estimate."""
        size, source = self._size(), self.case.input
        gates = sum(size.staged.values())
        data = {
            "state": blank((2**size.qubits,), np.complex128)
            if source is None
            else operands.outline(source, [STATE], upstream).operands["state"],
            "matrices": blank((size.matrix_entries,), np.complex128),
            "widths": blank((gates,), np.int64, max(size.staged, default=1)),
            "targets": blank((sum(w * count for w, count in size.staged.items()),), np.int64),
        }
        return Staged(data, {"state": STATE.axes, **fused_gates.AXES}, {}, dict(size.registers))

    def _initial_state(
        self, amplitudes: int, upstream: Mapping[str, Path]
    ) -> tuple[dict[str, Array], dict[str, Drawn | Stretched], dict[str, Any]]:
        """Return the state as an operand in memory, or as one that is drawn; and the attributes."""
        source = self.case.input
        if source is None:
            # A stream of its own: the circuit's random numbers do not depend on the state's.
            state = zero_state(amplitudes)
            if self.case.initial == "random":
                state = random_state(amplitudes, partial(self.rng, 1))
            return {}, {"state": state}, {"seed": self.seed}
        allow = self.case.lets_nonfinite_in
        found = operands.staged(source, [STATE], upstream, allow_nonfinite=allow)
        operand_values.refuse_zeros(found, STATE.name)
        return dict(found.operands), dict(found.drawn), dict(found.attributes)

    def as_computed(self, staged: Staged, plan_words: str) -> Staged:
        """Return the operands with the passes that an implementation fused the gates to.

        ``passes`` is (passes, 3): width, terms and times of each (`Applied`).
        """
        return with_passes(staged, plan_words) if plan_words else staged

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return batch gates on n amplitudes, 8 2^w n operations each; a pass moves the state."""
        widths, (passes, reads) = staged.operands["widths"], moved_widths(staged.operands)
        n = staged.operands["state"].size
        values = 2 * reads * n + float(np.sum(4.0**passes))
        return Shape(
            flops=8.0 * n * float(np.sum(2.0**widths)),
            bytes_moved=values * operands.complex_bytes(precision),
            batch=len(widths),
            n=n,
        )

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return our kernel for each pass; what it needs beside the state is there before."""
        qubits, gates = qubits_of(staged), fused_gates.gates_in(staged.operands)
        algorithm, plan_words = "gates in place", ""
        if self.case.fuse == "auto":
            given = [(gate.matrix, gate.targets) for gate in gates]
            plan = plan_circuit(qubits, given, precision=precision, device=device)
            forms, groups, predicted = plan.forms, plan.groups, plan.predicted_seconds
            plan_words = plan_described(plan)
            algorithm += f", {in_words(plan_words)}"
        else:
            forms = tuple(gate_form(qubits, gate.matrix, gate.targets) for gate in gates)
            groups = (SharedPass(1),) * len(forms)
            costs = gate_costs(precision, device, qubits)
            item = operands.complex_bytes(precision)
            predicted = sum(costs.of_form(qubits, form, item) for form in forms)
        if device.backend == "cpu":
            algorithm += f", {matrix_product.gemm_algorithm(precision, device)}"
        ready: list[Callable[[Any], None]] = []

        def compute(given: Mapping[str, Any]) -> Any:
            state = given["state"].copy()
            if not ready:  # at the first call, which is not timed: the device holds the state then
                ready.append(prepared_gates(state, forms, precision, groups))
            ready[0](state)
            return state

        def prepare(given: Mapping[str, Array]) -> Mapping[str, Array]:
            return operands.cast({"state": given["state"]}, precision)

        return Implementation.ours(
            precision, algorithm, compute, prepare, 1e6 * predicted, plan_words
        )

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return the gates with NumPy's product on the CPU, with cuBLAS's on a GPU."""
        gates, plan_words = fused_gates.gates_in(staged.operands), ""
        if self.case.fuse == "auto":
            gates = fused_gates.fused_for_products(qubits_of(staged), gates, device)
            plan_words = described(
                [gate.matrix for gate in gates], [len(gate.targets) for gate in gates]
            )
        # The targets stay on the host: they decide what is launched.
        evolution = plan_evolution(qubits_of(staged), [gate.targets for gate in gates])
        matrices = fused_gates.as_operands(gates)["matrices"]

        def call(multiply: Callable[..., Any], given: Mapping[str, Any]) -> Any:
            return evolve(given["state"], given["matrices"], evolution, multiply)

        def prepare(given: Mapping[str, Array], precision: Precision) -> Mapping[str, Array]:
            return operands.cast({"state": given["state"], "matrices": matrices}, precision)

        passes = f", {in_words(plan_words)}" if plan_words else ""
        found = implementations(self.case, device, "gemm", call, prepare)
        return [
            replace(one, algorithm=one.algorithm + passes, plan_words=plan_words) for one in found
        ]

    def reference(self, staged: Staged) -> StateReference:
        """Return the staged gates one by one in fp64 by NumPy."""
        names = ("state", "matrices", "widths", "targets")
        return state_reference(evolve_in_fp64(*(staged.operands[name] for name in names)))

    def assess(
        self, staged: Staged, reference: StateReference, result: Array, precision: Precision,
        device: str,
    ) -> Accuracy:  # fmt: skip
        """See `assess_state`."""
        return assess_state(reference, result, precision, backend=device, **self.applied(staged))

    def applied(self, staged: Staged) -> dict[str, Any]:
        """Return the gates' matrices, and the passes fused of them (`state_bounds`)."""
        passes = staged.operands.get("passes")
        return {
            "gates": [gate.matrix for gate in fused_gates.gates_in(staged.operands)],
            "passes": None if passes is None else [Applied(*map(int, one)) for one in passes],
        }

    def product(self, staged: Staged, result: Array) -> Product:
        """Return the amplitudes of the basis states."""
        qubits = qubits_of(staged)
        named = named_qubits(staged.attributes)
        said = f"basis state of {qubits} qubits, qubit 0 least significant{named}"
        states = Coordinate(numbered(result), "", said)
        return Product(
            "amplitude", result, STATE.axes, {STATE.axes[0]: states}, f"{self.name}: final state"
        )

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw probabilities of the 16 likeliest basis states, in the order of their numbers."""
        pictures.draw_likeliest(axes, product.data, 16)
