"""A planned circuit as an object that only launches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import ref

from argand.checks import check_written
from argand.device import is_cupy_array
from argand.frameworks.foreign import call_on_foreign, has_foreign, is_cuda_tensor
from argand.gates.api import qubits_of, state_precision
from argand.gates.circuit_files import load_circuit, save_circuit
from argand.gates.circuit_search import CircuitPlan
from argand.gates.prepared_gates import prepared_gates

if TYPE_CHECKING:
    from argand.array_types import ArrayT
    from argand.frameworks.torch_in_place import TensorInPlace


class PreparedCircuit:
    """A circuit whose passes are chosen and whose matrices lie where the state does.

    On a GPU a call only launches, on the current stream, and neither waits nor measures, so that a
    CUDA graph may capture it; the object must live as long as the graph. Gates of 8 qubits and more
    take memory for two more states, which a graph has for itself.

    Args:
        plan: a plan from `argand.plan_circuit`.
        state: (2^n,), as later calls have it; it is not changed.

    Raises:
        ValueError: a state of other qubits or another precision than the plan's.

    Example:
        >>> plan = argand.plan_circuit(2, [([[0, 1], [1, 0]], (1,))])
        >>> state = np.array([1, 0, 0, 0], np.complex64)
        >>> argand.PreparedCircuit(plan, state)(state)
        array([0.+0.j, 0.+0.j, 1.+0.j, 0.+0.j], dtype=complex64)
    """

    def __init__(self, plan: CircuitPlan, state: Any) -> None:
        if not isinstance(plan, CircuitPlan):
            raise TypeError(f"plan must be an argand.CircuitPlan, got {type(plan).__name__}")
        #: The passes that a call applies.
        self.plan = plan
        # The last state of CuPy's that was checked: of it nothing but the shape can change.
        self._known: Callable[[], Any] = _nothing
        self._on_tensor: TensorInPlace | None = None
        self._prepare(state)
        if is_cuda_tensor(state):
            from argand.frameworks.torch_in_place import TensorInPlace

            self._on_tensor = TensorInPlace(self._apply)

    def _prepare(self, state: Any) -> None:
        if has_foreign(state):
            call_on_foreign(self._prepare, {"state": state}, written="state")
            return
        plan = self.plan
        self._form = _form(state)
        state_precision(state, plan.precision)
        if qubits_of(state) != plan.qubits:
            raise ValueError(
                f"the plan is for {plan.qubits} qubits, the state has {qubits_of(state)}"
            )
        if not is_cupy_array(state):
            self._apply = prepared_gates(state, plan.forms, plan.precision, plan.groups)
            return
        from argand.runtime.calls.layout import on_device
        from argand.runtime.memory.device_table import wait_for_tables

        with state.device:
            apply = prepared_gates(state, plan.forms, plan.precision, plan.groups)
            wait_for_tables()  # later calls may be on other streams
        self._apply = on_device(apply, state.device)

    def __call__(self, state: ArrayT) -> ArrayT:
        """Apply the circuit in place and return the state.

        Raises ValueError where it is not of the form that was prepared.
        """
        known = self._known()
        if known is not None and known is state and state.shape == self._form[2]:
            self._apply(state)
            return state
        again = self._on_tensor
        if again is not None and again.repeat(state):
            return state
        if not has_foreign(state):
            self._applied(state)
            if is_cupy_array(state):
                self._known = ref(state)
            return state
        call_on_foreign(self._applied, {"state": state}, written="state")
        if again is not None and is_cuda_tensor(state):
            again.remember(state, self._form[1])
        return state

    def _applied(self, state: Any) -> Any:
        if _form(state) != self._form or not state.flags.c_contiguous:
            raise ValueError(
                f"state must be a contiguous {_words(self._form)} as prepared, "
                f"got {_words(_form(state))}"
            )
        check_written("state", state)
        self._apply(state)
        return state

    def describe(self) -> str:
        """Return the passes in lines: their qubits, gates and predicted times."""
        return self.plan.listing()

    def save(self, path: str | Path) -> None:
        """Write the fused gates and their passes to a file, for `load` in any process.

        Raises OSError where it cannot be written, NotOwnError for a folder that others may write
        to.
        """
        save_circuit(self.plan, path)

    @classmethod
    def load(cls, path: str | Path, state: Any) -> Self:
        """Return the circuit in a file of `save`, prepared for a state; nothing is fused again.

        Raises NotOwnError and NotPlainError for a file that others may have written, and ValueError
        for one that is not a planned circuit, is damaged, or is for another state.
        """
        return cls(load_circuit(path), state)


def _nothing() -> None:
    """Stand for the reference to a state before there is one."""


def _form(state: Any) -> tuple[Any, ...]:
    """Return the form that calls of one preparation share: class, type, shape and GPU."""
    device = getattr(state, "device", None)
    return type(state), getattr(state, "dtype", None), getattr(state, "shape", None), device


def _words(form: tuple[Any, ...]) -> str:
    kind, dtype, shape, device = form
    return f"{kind.__module__}.{kind.__name__} of {dtype} and shape {shape} on {device}"
