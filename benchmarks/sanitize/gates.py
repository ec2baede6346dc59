"""Gates on small states for compute-sanitizer: ``python -m benchmarks.sanitize.gates 3xfp16``.

Every kernel that a precision has of its own: by tensor cores each width, kind and side of a chunk;
at fp32 and fp64, whose kernels serve all precisions of their type, sums, permutations and states
smaller than a tile. Targets with qubit 0, beside it and far, under controls, and so few blocks that
each has more tiles than it holds at once. The state is an allocation of its own, so that an access
beyond it is one beyond what is allocated. Every result is verified against its bound from fp64. The
exit status is 1 where one is outside. ``--widths 6,7`` runs the kernels of these widths alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Gate, Precision, apply_gate
from argand.device import gpu
from argand.gates.canonical import GateForm, gate_form
from argand.gates.heuristics import mma_plans
from argand.gates.plan import MAX_WIDTH, GatePlan, widest_mma

from benchmarks.gates.circuits import random_unitary
from workflow.accuracy.gate_bounds import evolution_bound

_QUBITS = 15
"""16 tiles of the largest rings, which hold 8, and 8 of twice the size, whose rings hold 3."""
_SHARED_QUBITS = 16
"""16 tiles of shared passes, whose rings hold 5, and 8 of twice the size, whose rings hold 3."""
_SM_COUNT = 1
"""Multiprocessors that a launch is made for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run every gate at one precision."""
    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("precision", choices=list(PRECISIONS))
    found.add_argument(
        "--widths", type=widths_of, help="of gates, separated by commas; all, and shared passes"
    )
    given = found.parse_args(argv)
    row, rng = PRECISIONS[given.precision], np.random.default_rng(1)
    some = list(gates(row, rng, given.widths))
    if not some:
        found.error(f"--widths: {row.name} has no kernels of its own of these")
    import cupy

    cupy.cuda.set_allocator(None)
    device = replace(gpu(0), cores=_SM_COUNT)
    wrong = calls = 0
    for qubits, gate in some:
        state = rng.standard_normal((2**qubits, 2)).view(np.complex128)[:, 0]
        state = (state / np.linalg.norm(state)).astype(row.output)
        expected = apply_gate(
            state.astype(np.complex128), gate.matrix, gate.targets, controls=gate.controls
        )
        form = gate_form(qubits, gate.matrix, gate.targets, gate.controls)
        results: list[tuple[object, Any]] = [
            (plan, _applied(state, qubits, form, plan, device))
            for plan in plans(qubits, form, row, device)
        ]
        results.append(("its matrix on the GPU", _with_its_matrix(state, gate, row)))
        for plan, result in results:
            error = float(np.linalg.norm(result - expected))
            calls += 1
            if not error <= evolution_bound(row, [len(gate.targets)], "cuda"):
                wrong += 1
                print(f"{plan} on {gate.targets} under {gate.controls}: error {error:.3g}")
    shared = sequence_errors(row, device, rng) if given.widths is None else ()
    for name, error, bound in shared:
        calls += 1
        if not error <= bound:
            wrong += 1
            print(f"{name}: error {error:.3g}")
    print(f"{calls} calls, {wrong} wrong")
    return int(wrong > 0)


def widths_of(text: str) -> frozenset[int]:
    """Return the widths of a list. Raises ArgumentTypeError where one is no width of a gate."""
    every = {str(width): width for width in range(1, MAX_WIDTH + 1)}
    if unknown := set(text.split(",")) - set(every):
        raise argparse.ArgumentTypeError(f"widths are 1 to {MAX_WIDTH}, got {sorted(unknown)}")
    return frozenset(every[one] for one in text.split(","))


def sequence_errors(
    precision: Precision, device: Device, rng: np.random.Generator
) -> Iterator[tuple[str, float, float]]:
    """Yield a pass that gates share, its error and bound: with and without qubit 0, and phases."""
    import cupy
    from argand.gates import sequence_plan
    from argand.gates.gpu_sequence import PreparedSequence

    qubits = _SHARED_QUBITS
    # One multiprocessor has all tiles, or several have one or two each.
    launches = [(size, sms) for size in sequence_plan.TILES for sms in (device.sm_count, 8, 16)]
    for size, sms in launches:
        if sequence_plan.plan_sequence(precision, device.require_arch(), size) is None:
            continue
        tile = sequence_plan.completed_tile(qubits, range(qubits - size + 4, qubits), size)
        phase = np.diag([1, np.exp(0.7j)])
        low, *_, fourth, third, second, top = tile
        outside = next(qubit for qubit in range(qubits) if qubit not in tile)
        chosen = [
            ((low, second, fourth, top), ()), ((third,), (outside,)), ((second,), (third,)),
            ((2, fourth, third, top), ()),
        ]  # fmt: skip
        forms = [
            gate_form(qubits, phase if held else random_unitary(rng, len(targets)), targets, held)
            for targets, held in chosen
        ]
        state = rng.standard_normal((2**qubits, 2)).view(np.complex128)[:, 0]
        state = (state / np.linalg.norm(state)).astype(precision.output)
        given = cupy.asarray(state)
        PreparedSequence(qubits, forms, precision, tile, replace(device, cores=sms))(given)
        expected = state.astype(np.complex128)
        for form in forms:
            apply_gate(expected, form.matrix, form.targets, controls=form.controls)
        widths = [len(form.targets) for form in forms]
        error = float(np.linalg.norm(given.get() - expected))
        bound = evolution_bound(precision, widths, "cuda")
        yield f"a shared pass of tiles of {size} qubits, {sms} multiprocessors", error, bound


def gates(
    precision: Precision, rng: np.random.Generator, only: Collection[int] | None = None
) -> Iterator[tuple[int, Gate]]:
    """Yield the gates with the qubits of their states, of all widths where ``only`` names none."""
    exact = precision.exact_operands
    widths = range(1, MAX_WIDTH + 1) if exact else range(4, widest_mma(precision) + 1)
    for width in widths if only is None else sorted({*widths} & {*only}):
        order, above = 2**width, tuple(range(4, 4 + width))
        inside = (0, *above[1:])
        matrices = [random_unitary(rng, width)]
        if exact:
            phases = np.diag(np.exp(2j * np.pi * rng.random(order)))
            matrices.append(phases[rng.permutation(order)])
            yield width, Gate(matrices[0], tuple(reversed(range(width))))
            yield 9, Gate(matrices[0], tuple(range(1, 1 + width)), (0, 8))
        for matrix in matrices:
            yield _QUBITS, Gate(matrix, inside)
            yield _QUBITS, Gate(matrix, above)
            yield _QUBITS, Gate(matrix, tuple(range(1, 1 + width)))
            yield _QUBITS, Gate(matrix, above, (0,))
            yield _QUBITS, Gate(matrix, above, (3, _QUBITS - 1))


def plans(qubits: int, form: GateForm, precision: Precision, device: Device) -> Sequence[GatePlan]:
    """Return every kernel that applies a gate: of products by tensor cores all there are."""
    from argand.gates import gpu as cuda_gates

    plan = cuda_gates.plan_for(qubits, form, precision, device)
    assert plan is not None
    if not plan.on_tensor_cores:
        return [plan]
    return mma_plans(
        precision, device.require_arch(), width=plan.width, targets_qubit0=plan.targets_qubit0
    )


def _applied(state: Any, qubits: int, form: GateForm, plan: GatePlan, device: Device) -> Any:
    """Return the state after a gate by this kernel."""
    import cupy
    from argand.gates import gpu as cuda_gates
    from argand.gates.gate_launch import GateLaunch

    given = cupy.asarray(state)
    launch = GateLaunch(plan, qubits, form, device)
    cuda_gates.PreparedGate(launch, form, plan.precision)(given)
    return given.get()


def _with_its_matrix(state: Any, gate: Gate, row: Precision) -> Any:
    """Return the state after a gate whose matrix lies on the GPU."""
    import cupy

    given, matrix = cupy.asarray(state), cupy.asarray(gate.matrix)
    apply_gate(given, matrix, gate.targets, controls=gate.controls, precision=row)
    return given.get()


if __name__ == "__main__":
    sys.exit(main())
