"""Readout of a state: `statevector` with ``shots``, ``observables``, ``probabilities``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import Device, Precision, expectation, probabilities
from argand.readout.api import basis_states
from argand.readout.problem import chosen_qubits, parse_pauli

from workflow.accuracy import Accuracy
from workflow.accuracy.readout_accuracy import ReadoutReference, assess_readout
from workflow.accuracy.state_accuracy import StateBounds, state_bounds
from workflow.circuits import plain_readout
from workflow.circuits.registers import classical_bits, named_qubits, qubits_of
from workflow.config.readout_case import READOUTS
from workflow.data import Array, Coordinate, Product, Staged, blank, is_blank, numbered
from workflow.drawn import Stretched
from workflow.figures import pictures
from workflow.files.input_error import InputError
from workflow.implementation import Implementation, Shape
from workflow.inputs import operands
from workflow.threads import stretches
from workflow.workloads.base import NOTHING
from workflow.workloads.statevector import Statevector

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from workflow.config.statevector_case import StatevectorCase


_ROUNDING = 2.0**-10
"""Largest deviation from 1 of the norm of a state of float16 parts, rounded to 11 bits."""
_BLOCK = 1 << 16
"""Amplitudes of a state that are made fp64 at a time."""


def _norm(pieces: Iterable[Array]) -> float:
    """Return the norm of a state that comes in pieces; one is held at a time.

    In fp64: BLAS sums squares of complex64 in fp32, to which those of 30 qubits are too small.
    """
    total = 0.0
    for piece in pieces:
        for block in stretches(len(piece), _BLOCK):
            values = piece[block].astype(np.complex128)
            total += float(np.vdot(values, values).real)
    return math.sqrt(total)


def drawn_readout(rng: np.random.Generator, variant: str, case: dict[str, Any]) -> dict[str, Any]:
    """Return a drawn case that asks for a readout, of as many numbers as a power of two.

    A noisy one begins with |0...0>, has few qubits and gates, and trajectories to prove a digit.
    """
    circuit = case["circuit"]
    if variant == "noise":
        circuit = {**circuit, "qubits": 2 + circuit["qubits"] % 4}
        if "depth" in circuit:
            circuit["depth"] = 1 + circuit["depth"] % 8
        strengths = 10.0 ** rng.uniform(-3, -0.5, 2)
        noise = dict(zip(("depolarising", "damping"), map(float, strengths), strict=True))
        case = {"circuit": circuit, "noise": noise}
        variant = str(rng.choice(READOUTS))
        if variant == "shots":
            return {**case, "shots": 8192}
        noise["trajectories"] = 8192
    count, qubits = 1 << int(rng.integers(1, 5)), circuit["qubits"]
    if variant == "shots":
        return {**case, "shots": 1 << int(rng.integers(3, 12))}
    if variant == "observables":
        strings = ["".join(rng.choice([*"IXYZ"], qubits)) for _ in range(count)]
        begin = {} if "noise" in case else {"initial": "random"}  # else all may be 0
        return {**case, **begin, "observables": strings}
    chosen = rng.permutation(qubits)[: int(rng.integers(1, qubits + 1))]
    return {**case, "probabilities": [int(qubit) for qubit in chosen]}


class StateReadout(Statevector):
    """Counts, expectation values or marginals of the state after a circuit."""

    operation: ClassVar[str] = ""  # of gates and of readout: no package has both
    real_result: ClassVar[bool] = True
    wide_result: ClassVar[bool] = True
    caption: ClassVar[str] = (
        "The 16 most frequent outcomes of counts or marginal probabilities, in the order of their "
        "numbers, or the expectation value of each Pauli string; of noisy circuits with their "
        "standard errors."
    )

    @classmethod
    def for_case(cls, case: StatevectorCase) -> type[StateReadout]:
        """See `Workload.for_case`: readout of one state, or means over noisy ones."""
        if case.noise is None:
            return cls
        from workflow.workloads.noisy_readout import NoisyReadout

        return NoisyReadout

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise InputError also for qubits and Pauli strings that the circuit's do not fit."""
        super().check(upstream)
        size = self._size()
        try:
            chosen_qubits(self.case.probabilities or (), size.qubits)
            paulis = [(one[0], parse_pauli(one, size.qubits)) for one in self.case.paulis()]
        except ValueError as error:
            raise InputError(f"{self.case.readout}: {error}") from None
        for letters, pauli in paulis:
            if found := [qubit for qubit in size.acted_on_measured if pauli.flips >> qubit & 1]:
                raise InputError(
                    f"observables: {letters!r} has X or Y on qubits {found}, which the circuit "
                    "measures before it acts on them again: after that its value is 0; for that of "
                    "the state without measurements, take them out of the circuit"
                )

    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return `Statevector.staging`; raises InputError for a state that is not of norm 1."""
        staged = super().staging(upstream)
        if self.case.input is not None:
            drawn = staged.drawn.get("state")
            norm = _norm(
                (values for _, values in drawn.read()) if isinstance(drawn, Stretched)
                else [staged.operands["state"]]
            )  # fmt: skip
            if abs(norm - 1) > _ROUNDING:
                raise InputError(
                    "input.state must have the norm 1 of a state, of which "
                    f"{self.case.readout} are asked, got {norm:.6g}; divide it by that"
                )
        return staged

    def shots_seed(self) -> int:
        """Return the seed of the shots; it depends on the study's seed and the workload's name."""
        return int(self.rng(2).integers(2**63))

    def result_shape(self, outline: Staged) -> tuple[int, ...]:
        """Return a basis state of each shot, a value of each Pauli string, or of each outcome."""
        if self.case.shots is not None:
            return (self.case.shots,)
        if self.case.observables is not None:
            return (len(self.case.observables),)
        return (2 ** len(self.case.probabilities or ()),)

    def product_outline(self, outline: Staged) -> Product:
        """See `Workload.product_outline`; of counts an upper bound."""
        return self.product(outline, blank(self.result_shape(outline), np.float64))

    def product_bytes(self, outline: Staged, written: int) -> int:
        """See `Workload.product_bytes`; a text takes 32 bytes, and 8 for each 8 letters begun."""
        if self.case.shots is None:
            return written
        found = self.product_outline(outline)
        arrays = [found.data, *(one.values for one in found.coordinates.values())]
        texts = [one for one in arrays if one.dtype.kind == "U"]
        numbers = sum(one.nbytes for one in arrays if one.dtype.kind != "U")
        return numbers + sum(one.size * (32 + 8 * math.ceil(one.itemsize / 32)) for one in texts)

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return the work of the evolution, and of one more pass that reads the state."""
        found = super().shape(staged, precision)
        read = operands.complex_bytes(precision) * staged.operands["state"].size
        return replace(found, bytes_moved=found.bytes_moved + read)

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return our gates, then our readout."""
        found = super().argand(staged, precision, device)
        return replace(
            found, algorithm=f"{found.algorithm}, then {self.case.readout}",
            compute=lambda given: self._read_out(found.compute(given)),
        )  # fmt: skip

    def _read_out(self, state: Any) -> Any:
        if self.case.shots is not None:
            found = basis_states(state, self.case.shots, seed=self.shots_seed())
            return found.astype(np.float64)  # exact: fewer than 2^53
        if self.case.observables is not None:
            return expectation(state, self.case.paulis())
        return probabilities(state, self.case.probabilities or ())

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return the peers' products, then the readout by NumPy or CuPy."""

        def read_out(one: Implementation) -> Callable[[Mapping[str, Any]], Any]:
            return lambda given: self._plain(one.compute(given))

        return [replace(one, compute=read_out(one)) for one in super().baselines(staged, device)]

    def _plain(self, state: Any) -> Any:
        if self.case.shots is not None:
            return plain_readout.shots(state, self._uniforms())
        if self.case.observables is not None:
            strings, coefficients = zip(*self.case.paulis(), strict=True)
            return plain_readout.expectation(state, strings, coefficients)
        return plain_readout.marginals(state, self.case.probabilities or ())

    def _uniforms(self) -> Array:
        """Return the shots' numbers in [0, 1), ascending: those that `argand.sample` draws."""
        drawn = np.random.Philox(key=self.shots_seed()).random_raw(self.case.shots or 0)
        drawn.sort()
        numbers = drawn.astype(np.float64)
        numbers *= 2.0**-64
        return numbers

    def reference(self, staged: Staged) -> ReadoutReference:  # type: ignore[override]
        """Return the staged gates one by one in fp64 by NumPy, and the readout of that state."""
        exact = super().reference(staged)
        state, none = exact.values, np.empty(0)
        if self.case.shots is not None:
            values, scale = plain_readout.running_sums(state), self._uniforms()
        elif self.case.observables is not None:
            strings, coefficients = zip(*self.case.paulis(), strict=True)
            values, scale = plain_readout.expectation(state, strings), np.array(coefficients)
        else:
            values, scale = plain_readout.marginals(state, self.case.probabilities or ()), none
        return ReadoutReference(
            self.case.readout or "", qubits_of(staged), exact.norm, values, scale
        )

    def assess(
        self,
        staged: Staged,
        reference: ReadoutReference,  # type: ignore[override]
        result: Array,
        precision: Precision,
        device: str,
    ) -> Accuracy:
        """See `assess_readout`."""
        bounds = self.bounds(staged, precision, device)
        return assess_readout(reference, result, precision, bounds, backend=device)

    def bounds(self, staged: Staged, precision: Precision, device: str) -> StateBounds:
        """Return the bounds of the state that is read out."""
        size = staged.operands["state"].size
        return state_bounds(precision, device, size, **self.applied(staged))

    def product(self, staged: Staged, result: Array) -> Product:
        """Return counts by state, expectation values by string, or probabilities by outcome."""
        if self.case.observables is not None:
            strings, coefficients = zip(*self.case.paulis(), strict=True)
            what = f"Pauli string, the highest qubit first{self._named(staged)}"
            factor = "factor of the Pauli string, which its expectation value here contains"
            return Product(
                "expectation", result, ("observable",),
                {"observable": Coordinate(np.array(strings), "", what),
                 "coefficient": Coordinate(np.array(coefficients), "", factor, ("observable",))},
                f"{self.name}: expectation values",
            )  # fmt: skip
        if self.case.shots is not None:
            most = min(self.case.shots, 2 ** qubits_of(staged))
            found = blank((most,), np.int64), blank((most,), np.int64)
            if not is_blank(result):
                found = np.unique(result.astype(np.int64), return_counts=True)
            return self.counted(staged, *found)
        numbers = numbered(result)
        qubits = ", ".join(map(str, self.case.probabilities or ()))
        return Product(
            "probability", result, ("outcome",),
            {"outcome": Coordinate(
                numbers, "", f"bit j is that of the j-th of qubits {qubits}{self._named(staged)}"
            )},
            f"{self.name}: probabilities of qubits {qubits}",
        )  # fmt: skip

    def counted(self, staged: Staged, outcomes: Array, counts: Array) -> Product:
        """Return the counts by basis state, beside it the circuit's classical bits."""
        said = f"basis state, qubit 0 least significant{self._named(staged)}"
        found = {"outcome": Coordinate(outcomes, "", said)}
        bits = classical_bits(staged.attributes, outcomes)
        if bits is not None:
            found["classical_bits"] = bits
        return Product(
            "counts", counts, ("outcome",), found, f"{self.name}: counts of {self.case.shots} shots"
        )

    def _named(self, staged: Staged) -> str:
        return named_qubits(staged.attributes)

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw bars: the most frequent outcomes, or the value of each Pauli string."""
        first = product.coordinates[product.axes[0]].values
        known = product.coordinates.get("standard_error")
        errors = None if known is None else known.values
        if self.case.observables is not None:
            factors = product.coordinates["coefficient"].values
            named = [
                f"{factor:g} {one}" if factor != 1 else one
                for factor, one in zip(factors, first, strict=True)
            ]
            pictures.draw_strings(axes, product.data, named, errors)
        else:
            bits = product.coordinates.get("classical_bits")
            pictures.draw_outcomes(axes, product.data, first, 16, product.name, errors, bits)
