"""`accelerate`: complex products of torch and CuPy by argand, without a change of the program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from argand.accelerate.interceptors import intercepted
from argand.accelerate.report import Report
from argand.accelerate.router import Router
from argand.checks import as_real
from argand.precision import Precision, get_precision


@contextmanager
def accelerate(
    *,
    tolerance: float | None = None,
    precision: str | Precision | None = None,
    report: Callable[[str], object] | bool = True,
) -> Iterator[Report]:
    """Make complex products of torch and CuPy within the context by argand, where it is faster.

    torch.matmul, ``@``, mm and bmm of tensors and cupy.matmul of arrays (``@`` of CuPy's cannot be
    intercepted) on a GPU, of matrices or batches of complex64 or complex128, are measured at the
    first call of each form, shapes and strides, by argand and by the library. All calls of the form
    are then made by the faster one. Calls with an ``out``, and calls that are compiled or captured,
    are left to the library. Gradients are those of `argand.gemm`. Every call of torch's within the
    context passes through Python, which takes the host some microseconds.

    Libraries are those that the program has imported before. torch's calls are those of the thread
    that entered the context, as torch's modes are; CuPy's are those of all threads.

    Args:
        tolerance, precision: those of the products, as in `argand.gemm`: a tolerance is proven, by
            exact integers. Both None is the default of their type: fp64, and for complex64 on a GPU
            3xtf32, whose errors are smaller than those of cuBLAS's fp32.
        report: True writes the report to stderr at the end; or what is called with it as text.

    Yields:
        The `Report`, which counts while the context lasts.

    Raises:
        ValueError: a tolerance and a precision, an unknown one, or a tolerance that is not above 0.
        TypeError: a tolerance or a precision of another kind.

    Example:
        >>> with argand.accelerate(tolerance=1e-6, report=False) as done:
        ...     pass
        >>> done.routed_calls
        0
    """
    if tolerance is not None and precision is not None:
        raise ValueError(f"give a precision or a tolerance, got {precision!r} and {tolerance}")
    if precision is not None:
        get_precision(precision, exact=True)
    if tolerance is not None and not as_real(tolerance, "tolerance") > 0:
        raise ValueError(f"tolerance must be above 0, got {tolerance}")
    router = Router(tolerance, precision)
    try:
        with intercepted(router):
            yield router.report
    finally:
        if callable(report):
            report(str(router.report))
        elif report:
            sys.stderr.write(f"{router.report}\n")
