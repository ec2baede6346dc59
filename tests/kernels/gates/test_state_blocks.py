"""Blocks of states within a workspace limit: they cover it, and are as large as is allowed."""

from __future__ import annotations

import numpy as np
import pytest
from argand import PRECISIONS, WorkspaceError, workspace_limit
from argand.gates.canonical import gate_form
from argand.gates.state_blocks import block_memory, blocks_of, columns_within

from tests.kernels.gates.gate_cases import random_unitary

LIBRARY = 16 << 10


@pytest.mark.each_value
@pytest.mark.parametrize("most", [1, 3, 4, 30, 64, 1000, 1 << 20])
@pytest.mark.parametrize("shape", [(), (16,), (4, 1, 8), (2, 1, 4, 1, 16)], ids=str)
def test_blocks_cover_a_state_once(shape: tuple[int, ...], most: int) -> None:
    times = np.zeros((2, *shape), int)
    for block in blocks_of(shape, most):
        part = times[(slice(None), *block)]
        assert part[0].size <= max(1, most)
        part += 1
    assert (times == 1).all()


@pytest.mark.parametrize("precision", ["3xfp16", "fp64"])
@pytest.mark.parametrize("monomial", [False, True])
def test_blocks_are_as_large_as_the_limit_allows(
    rng: np.random.Generator, precision: str, monomial: bool
) -> None:
    matrix = np.eye(256)[rng.permutation(256)] if monomial else random_unitary(rng, 8)
    form = gate_form(24, matrix, range(8))
    memory = block_memory(form, PRECISIONS[precision], LIBRARY)
    columns = 1 << 16
    assert columns_within(form, memory, columns) == columns
    with workspace_limit(64 << 20):
        found = columns_within(form, memory, columns)
        assert memory.of(found) <= 64 << 20 < memory.of(found + 1)
    least = memory.of(128)
    with workspace_limit(least):
        assert columns_within(form, memory, columns) >= 128
    with workspace_limit(least - 1), pytest.raises(WorkspaceError, match="8 qubits") as error:
        columns_within(form, memory, columns)
    assert error.value.needed == least
