"""Trials of planted errors, and what they come to for a kind at a precision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from argand import Device, Precision, get_precision

from benchmarks.planted.cases import cases_of, small_references
from benchmarks.planted.errors import SCALED, STEPS, Array, places, planted, rows_of, scaled
from workflow.accuracy import Accuracy
from workflow.steps.resident import download, upload
from workflow.workloads import Staged, Workload

UNPROVEN = "not provable"
"""Stands in the reason of a result whose bound proves nothing at its precision."""


@dataclass(frozen=True)
class PlantedRow:
    """Errors that verification caught in results of a kind at a precision.

    Attributes:
        device: cpu or cuda, whose bounds differ.
        reference: full or sampled.
        cases: results that were computed; ``unproven`` of them cannot be verified at the precision,
            and ``failed`` are wrong as they are.
        tries, caught: errors that were planted, without those of `STEPS`; caught of them.
        always, missed: names of the errors that were caught in every trial, and of the others with
            how often of how many trials they were not.
        largest, typical, random, whole: the largest d up to which 1 + 10^-d was always caught, at
            that element or in all of the result; None where 1 + 10^0 was not.
    """

    device: str
    kind: str
    reference: str
    precision: str
    cases: int
    unproven: int
    failed: int
    tries: int
    caught: int
    always: str
    missed: str
    largest: float | None
    typical: float | None
    random: float | None
    whole: float | None


@dataclass
class _Tally:
    """The trials of one row so far."""

    cases: int = 0
    unproven: int = 0
    failed: list[str] = field(default_factory=list)
    tried: Counter[str] = field(default_factory=Counter)
    caught: Counter[str] = field(default_factory=Counter)
    depth: dict[str, float] = field(default_factory=dict)

    def row(self, device: str, kind: str, reference: str, precision: str) -> PlantedRow:
        """Return the trials as a row."""
        always = [name for name in self.tried if self.caught[name] == self.tried[name]]
        missed = [
            f"{name} {count - self.caught[name]} of {count}"
            for name, count in self.tried.items()
            if name not in always
        ]
        depths = [self.depth.get(place, -1) for place in SCALED]
        return PlantedRow(
            device, kind, reference, precision, self.cases, self.unproven, len(self.failed),
            self.tried.total(), self.caught.total(), "; ".join(always), "; ".join(missed),
            *(None if depth < 0 else depth for depth in depths),
        )  # fmt: skip


def rows_for(
    kind: str, precisions: Sequence[str], device: Device, count: int, seed: int
) -> Iterator[tuple[PlantedRow, list[str]]]:
    """Yield a row for each reference and precision, and what failed of the results as they are.

    Precisions that the kind does not have are left out.
    """
    tallies: dict[tuple[str, str], _Tally] = {}
    for number, workload, sampled in cases_of(kind, count, seed):
        staged = workload.stage()
        with small_references(sampled):
            reference = workload.reference(staged)
        for name in (one for one in precisions if one in workload.case.precision_names):
            precision = get_precision(name)
            result, assess = _computed(workload, staged, reference, precision, device)
            untouched = assess(result)
            tally = tallies.setdefault((untouched.reference, name), _Tally())
            tally.cases += 1
            if untouched.verified:
                rng = np.random.default_rng([seed, number])
                _try(tally, result, assess, rng)
            elif UNPROVEN in untouched.reason:
                tally.unproven += 1
            else:
                tally.failed.append(f"{workload.case!r}: {untouched.reason}")
    for (source, name), tally in sorted(tallies.items(), key=lambda item: item[0][0]):
        yield tally.row(device.backend, kind, source, name), tally.failed


Assess = Callable[[Array], Accuracy]


def _computed(
    workload: Workload, staged: Staged, reference: Any, precision: Precision, device: Device
) -> tuple[Array, Assess]:
    """Return a right result, and how the verify step assesses it or a copy."""
    one = workload.argand(staged, precision, device)
    result = download(one.compute(upload(one.prepare(staged.operands), device)))
    operands = workload.as_computed(staged, one.plan_words)

    def assess(data: Array) -> Accuracy:
        return workload.assess(operands, reference, data, precision, device.backend)

    return result, assess


def _try(tally: _Tally, result: Array, assess: Assess, rng: np.random.Generator) -> None:
    """Plant all errors into one result, each by itself."""
    for name, wrong in planted(result, rng):
        tally.tried[name] += 1
        tally.caught[name] += not assess(wrong).verified
    at = {**places(rows_of(result), rng), "all": slice(None)}
    for place in SCALED:
        deepest = -1.0
        for d in STEPS:
            changed = scaled(result, at[place], d)
            if changed is None or assess(changed).verified:
                break
            deepest = d
        tally.depth[place] = min(deepest, tally.depth.get(place, deepest))
