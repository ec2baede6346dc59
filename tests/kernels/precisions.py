"""Lists of precisions that tests run over."""

from __future__ import annotations

from argand import PRECISIONS
from argand.gemm.in_tf32 import product_in_tf32
from argand.softmax.problem import SOFTMAX_PRECISIONS

SCALED = [name for name, row in PRECISIONS.items() if row.scaled]
WITH_COUNTERPART = [name for name in SCALED if PRECISIONS[name].counterpart]
"""Scaled ones that have a counterpart without scales."""
SOFTMAX = list(SOFTMAX_PRECISIONS)
SPLIT = [name for name, row in PRECISIONS.items() if row.terms > 1]
TENSOR = [name for name, row in PRECISIONS.items() if not row.exact_operands]
HALF = [name for name in TENSOR if PRECISIONS[name].operand.bytes == 2]
SINGLE_HALF = [name for name in HALF if PRECISIONS[name].terms == 1]
IN_TF32 = [name for name in HALF if product_in_tf32(PRECISIONS[name])]
"""Those of 16 bits whose products kernels of tf32 may compute."""
READ_IN_PLACE = [name for name in TENSOR if name not in SCALED or name in SPLIT]
"""Those whose wgmma kernels read complex64 in place: split ones scale it in each stage."""
