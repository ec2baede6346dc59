"""Operands that tests of the CPU's products share, and the comparison with fp64."""

from argand import PRECISIONS, gemm

from tests.verdicts import is_right
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference

OPS = ["N", "T", "C"]


def check(a, b, c=None, *, precision, rounding=None, out=None, verdict="verified", **kw):
    """gemm is within its bounds of SciPy in fp64; ``verdict`` is one, or several that may be."""
    row = PRECISIONS[precision].with_rounding(rounding)
    reference = product_reference(a, b, c, **kw)
    got = gemm(a, b, c, precision=precision, rounding=rounding, out=out, **kw)
    assert got.dtype == row.output
    accuracy = assess_product(reference, got, row, backend="cpu")
    allowed = (verdict,) if isinstance(verdict, str) else verdict
    right = "verified" in allowed and is_right(accuracy, precision)
    assert right or accuracy.verdict in allowed, accuracy.reason
    return got
