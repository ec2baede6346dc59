"""Frameworks are optional: argand imports none of them, nor do calls on NumPy's arrays."""

from __future__ import annotations

import subprocess
import sys


def test_importing_argand_imports_no_framework() -> None:
    code = (
        "import sys, numpy, argand;"
        "x = numpy.ones((4, 4)); argand.gemm(x, x); argand.dft(x); argand.softmax(x);"
        "print([name for name in ('torch', 'jax', 'jaxlib', 'cupy') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
