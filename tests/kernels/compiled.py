"""Kernels that compile without a GPU: without spills, without a stack, and without a word of the
assembler's about slow code.

The short run compiles for the oldest target and Hopper. It takes as many plans of an operation as
hold each kernel and each precision on both, each flag of each kernel, and of each size the smallest
and the largest; the exhaustive run takes every plan for every target.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES, Arch
from argand.runtime.compile.compiler import compile_cubin
from argand.runtime.compile.cubin import sections
from argand.runtime.compile.dependent_launch import WAIT_FIRST
from argand.runtime.plan import PlanError, require_precision

from tests.covers import EXHAUSTIVE, covered, fields_of

SHORT = ("sm_80", "sm_90a")
ARCHS = {arch.target: arch for arch in ARCHITECTURES if EXHAUSTIVE or arch.target in SHORT}
HOPPER = "sm_90a"
_WAIT, _CONSTANT = 0x02E, 0x182
"""Kinds of instructions of sm_90: griddepcontrol.wait, and a load of a constant."""
LAYOUTS = [(True, False), (False, True), (True, True), (False, False)]


@dataclass(frozen=True)
class Candidate:
    """A plan to compile at a precision and for an architecture.

    ``more`` is what else the source is made of, or what the plan was found by, ``traits`` what
    follows from the plan. ``ignored`` names fields of the plan that a cover need not hold, such as
    a length.
    """

    precision: str
    arch: Arch
    plan: Any
    more: Any = None
    traits: tuple[tuple[str, Hashable], ...] = ()
    ignored: frozenset[str] = field(default=frozenset(), compare=False)

    def values(self) -> Mapping[str, Hashable]:
        """Return the values of which a cover holds each one.

        They are pairs where a kernel or a precision is to be compiled for each architecture, and
        for flags and names, which choose between the branches of each kernel.
        """
        found = dict(fields_of(self.plan))
        found |= {f"more {name}": value for name, value in fields_of(self.more or {}).items()}
        kernel, row = (
            (type(self.plan), getattr(self.plan, "kind", None)),
            PRECISIONS[self.precision],
        )
        for name, value in found.items():
            found[name] = (kernel, value) if isinstance(value, bool | str) else value
        found |= dict(self.traits)
        found |= {"kernel": (self.arch, kernel), "precision": (self.arch, self.precision)}
        found |= {"terms": (kernel, row.scaled, row.terms)}
        return {name: value for name, value in found.items() if name not in self.ignored}


def ends_of(rows: Iterable[Mapping[str, Hashable]]) -> dict[str, tuple[int, int]]:
    """The smallest and the largest of each value that is a size."""
    sizes = defaultdict(set)
    for row in rows:
        for name, value in row.items():
            if isinstance(value, int):
                sizes[name].add(value)
    return {name: (min(found), max(found)) for name, found in sizes.items()}


def at_ends(
    row: Mapping[str, Hashable], ends: Mapping[str, tuple[int, int]]
) -> dict[str, Hashable]:
    """The values without sizes between the ends: what spills there does so at the largest too."""
    return {
        name: value
        for name, value in row.items()
        if not isinstance(value, int) or value in ends[name]
    }


class Kernels:
    """The kernels of an operation: all candidates, each once, or one cover of them.

    Args:
        candidates: yields them; they are asked for by the first test that compiles some.
    """

    def __init__(self, candidates: Callable[[], Iterable[Candidate]]) -> None:
        self._candidates = candidates

    @cached_property
    def _chosen(self) -> dict[tuple[str, Arch], list[Candidate]]:
        chosen = defaultdict(list)
        every = list(dict.fromkeys(self._candidates()))
        ends = ends_of(one.values() for one in every)
        for one in covered(every, lambda one: at_ends(one.values(), ends), strength=1):
            chosen[one.precision, one.arch].append(one)
        return chosen

    def of(self, precision: str, arch: Arch) -> list[Candidate]:
        """Those of a precision and an architecture, at least one; none where it is refused."""
        if refused(precision, arch):
            return []
        assert self._chosen[precision, arch]
        return self._chosen[precision, arch]

    def on(self, arch: Arch) -> list[Candidate]:
        """Those of an architecture at every precision that has some, at least one."""
        found = [one for (_, of), every in self._chosen.items() if of == arch for one in every]
        assert found
        return found


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


def reads_before_it_waits(cubin: bytes) -> list[str]:
    """Names of the kernels for sm_90 that access memory ahead of their wait for the one before.

    An instruction has 16 bytes, whose lowest 9 bits are its kind. Loads, stores, atomics and copies
    are the kinds from 0x180 to 0x1bf, but for 0x182, a load of a constant.
    """
    found = []
    for section in sections(cubin):
        if not section.name.startswith(".text."):
            continue
        kinds = [word & 0x1FF for word, _ in struct.iter_unpack("<QQ", section.data)]
        first = kinds[: kinds.index(_WAIT)]
        if any(0x180 <= kind < 0x1C0 and kind != _CONSTANT for kind in first):
            found.append(section.name)
    return found


def assert_clean(source: str, target: str, kernel: str) -> None:
    """Compile without spills, stack and warnings; each kernel first waits for the one before."""
    bodies = re.findall(r"__global__[^{]*\{\n(.*\n(?:.*\n)?)", source)
    assert bodies
    assert all(WAIT_FIRST in body for body in bodies)
    compiled = compile_cubin(source, target)
    resources = compiled.resources[kernel]
    assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)
    assert 0 < resources.registers <= 255
    assert compiled.warnings == ()
    if target == HOPPER:
        assert reads_before_it_waits(compiled.cubin) == []
