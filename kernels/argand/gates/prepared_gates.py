"""Gates in a row as one call, their matrices at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from argand.device import is_cuda_array
from argand.gates import cpu as numpy_gates
from argand.gates.api import compile_gates, prepared_gate, prepared_sequence
from argand.gates.canonical import GateForm
from argand.gates.sequences import SharedPass, in_groups
from argand.precision import Precision


def prepared_gates(
    state: Any,
    forms: Sequence[GateForm],
    precision: Precision,
    groups: Sequence[SharedPass] | None = None,
) -> Callable[[Any], None]:
    """Return a call that applies gates in order to states like this one (`api.prepared_gate`).

    On a GPU those of one of the ``groups`` share a pass over it.
    """
    if not is_cuda_array(state):
        forms = [form for form in forms if not form.is_identity]
        return partial(numpy_gates.apply_gates, forms=forms, precision=precision)
    calls: list[Callable[[Any], None]] = []
    groups = groups or [SharedPass(1)] * len(forms)
    passes = [[one for one in forms[some] if not one.is_identity] for some in in_groups(groups)]
    compile_gates(state, [own[0] for own in passes if len(own) == 1], precision)
    for group, own in zip(groups, passes, strict=True):
        if len(own) > 1:
            calls.append(prepared_sequence(state, own, precision, group.tile))
        else:
            calls += [prepared_gate(state, form, precision) for form in own]

    from argand.gates.gpu_passes import launched_together

    with state.device:
        together = launched_together(calls)

    def apply(to: Any) -> None:
        for call in together:
            call(to)

    return apply
