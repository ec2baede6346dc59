"""Lists of precisions that tests run over."""

from __future__ import annotations

from argand import PRECISIONS

SCALED = [name for name, row in PRECISIONS.items() if row.scaled]
UNSCALED = [name for name in SCALED if PRECISIONS[name].counterpart]
"""Scaled ones that have a counterpart without scales."""
SOFTMAX = [name for name in PRECISIONS if name not in SCALED or name in UNSCALED]
SPLIT = [name for name, row in PRECISIONS.items() if row.terms > 1]
TENSOR = [name for name, row in PRECISIONS.items() if not row.exact_operands]
HALF = [name for name in TENSOR if PRECISIONS[name].operand.bytes == 2]
SINGLE_HALF = [name for name in HALF if PRECISIONS[name].terms == 1]
