"""The model of stores and launches on an sm_90 GPU agree on which tiles are by_tma."""

from __future__ import annotations

from typing import Any

import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.question import GemmSizes
from argand.gemm.sm90.epilogue_times import stores_directly

from tests.kernels.gemm.sm90.wgmma_cases import choices
from tests.kernels.precisions import TENSOR

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]


@pytest.mark.parametrize("columns", [4096, 4098, 4097])
@pytest.mark.parametrize("precision", TENSOR)
def test_a_tile_is_stored_as_a_launch_stores_it(cp: Any, precision: str, columns: int) -> None:
    from argand.gemm.sm90.epilogue_choice import with_tma_epilogue
    from argand.runtime.calls.layout import Layout

    row, rows = PRECISIONS[precision], 512
    out = Layout(rows, columns, columns, 1, rows * columns, 8, 32)
    stored = set()
    for choice in choices(cp, precision, GemmSizes(1, rows, columns, 256)):
        if choice.wgmma is None or choice.split_k_slices > 1:
            continue
        target = out.transposed if choice.swapped else out
        by_tma = with_tma_epilogue(choice.wgmma, row, target, arch_for(90)).tma_epilogue
        assert stores_directly(choice.wgmma, row, columns) != by_tma, choice.name
        stored.add(by_tma)
    assert (True in stored) == (columns % 2 == 0)
