"""How the model of stores follows sectors of L2."""

from __future__ import annotations

import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.candidates import candidates
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm90.epilogue_times import sectors_factor

HOPPER = arch_for(90)
SM_COUNT = 132


@pytest.mark.parametrize("half", [False, True])
def test_runs_that_begin_within_a_sector_cost_three_more_or_four(half: bool) -> None:
    """No line of whole sectors begins within one, and every other line of half sectors does."""
    item = 4 if half else 8
    for columns, begin_within in ((4096, 0.0), (4096 + 16 // item, 0.5)):
        sizes = GemmSizes(1, 512, columns, 64, half_output=half)
        question = Question(PRECISIONS["bf16"], sizes, OperandTraits(), OperandTraits())
        found = {
            sectors_factor(choice, choice.wgmma, question)
            for choice in candidates(question, HOPPER, SM_COUNT)
            if choice.wgmma is not None and choice.split_k_slices == 1
        }
        runs = {(3, 8 * item), (3, 16 * item)} | (set() if half else {(3.5, 128), (4, 128)})
        assert found <= {1 + sectors * 32 / run * begin_within for sectors, run in runs}
        assert (found == {1.0}) == (begin_within == 0)
