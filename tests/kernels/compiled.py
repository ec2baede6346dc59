"""Kernels that compile without a GPU: without spills, without a stack, and without a word of the
assembler's about slow code.

The short run compiles for the oldest target and Hopper as many plans of an operation as hold every
pair of its precisions, targets and fields of plans; the exhaustive run every plan for every target.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES, Arch
from argand.runtime.compiler import compile_cubin
from argand.runtime.plan import PlanError, require_precision

from tests.covers import EXHAUSTIVE, covered, fields_of

SHORT = ("sm_80", "sm_90a")
ARCHS = {arch.target: arch for arch in ARCHITECTURES if EXHAUSTIVE or arch.target in SHORT}
HOPPER = "sm_90a"
LAYOUTS = [(True, False), (False, True), (True, True), (False, False)]


@dataclass(frozen=True)
class Candidate:
    """A plan to compile at a precision and for an architecture.

    ``more`` is what else the source is made of, or what the plan was found by. ``unpaired`` names
    fields of the plan whose values need no pairing with others, such as a length.
    """

    precision: str
    arch: Arch
    plan: Any
    more: Any = None
    unpaired: frozenset[str] = field(default=frozenset(), compare=False)

    def features(self) -> Mapping[str, Hashable]:
        """By what a cover chooses."""
        found = dict(fields_of(self.plan))
        found |= {f"more {name}": value for name, value in fields_of(self.more or {}).items()}
        found |= {"precision": self.precision, "arch": self.arch, "type": type(self.plan)}
        return {name: value for name, value in found.items() if name not in self.unpaired}


Compiled = dict[tuple[str, Arch], list[Candidate]]


def to_compile(candidates: Iterable[Candidate]) -> Compiled:
    """By precision and architecture the candidates, each once: all, or one cover of them all."""
    chosen: Compiled = defaultdict(list)
    for candidate in covered(dict.fromkeys(candidates), Candidate.features):
        chosen[candidate.precision, candidate.arch].append(candidate)
    return chosen


def offered(
    names: Iterable[str], archs: Iterable[Arch] = ARCHS.values()
) -> Iterable[tuple[str, Arch]]:
    """Precisions and architectures that compute them."""
    every = itertools.product(names, archs)
    return [(name, arch) for name, arch in every if arch.sm >= PRECISIONS[name].min_sm]


def refused(name: str, arch: Arch) -> bool:
    """Whether an architecture lacks a precision, which is then refused."""
    row = PRECISIONS[name]
    if arch.sm >= row.min_sm:
        return False
    with pytest.raises(PlanError, match=f"{name} needs compute capability"):
        require_precision(row, arch)
    return True


def assert_clean(source: str, target: str, kernel: str) -> None:
    compiled = compile_cubin(source, target)
    resources = compiled.resources[kernel]
    assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)
    assert 0 < resources.registers <= 255
    assert compiled.warnings == ()
