"""Kernels that compile without a GPU: without spills, without a stack, and without a word of the
assembler's about slow code.
"""

from __future__ import annotations

from argand.device import ARCHITECTURES
from argand.runtime.compiler import compile_cubin

ARCHS = {arch.target: arch for arch in ARCHITECTURES if arch.target in ("sm_80", "sm_90a")}
LAYOUTS = [(True, False), (False, True), (True, True), (False, False)]


def assert_clean(source: str, target: str, kernel: str) -> None:
    compiled = compile_cubin(source, target)
    resources = compiled.resources[kernel]
    assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)
    assert 0 < resources.registers <= 255
    assert compiled.warnings == ()
