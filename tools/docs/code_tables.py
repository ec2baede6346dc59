"""Tables that follow from code: precisions, GPUs that kernels compile for, kinds of workloads."""

from __future__ import annotations

import math
from pathlib import Path

from argand.device import ARCHITECTURES
from argand.precision import PRECISIONS, Precision

from workflow.tables.readable import Column, markdown_table, number
from workflow.workloads import KINDS


def precisions_table(_: Path) -> str:
    """Return the table of precisions, and of what runs each."""
    columns = [
        Column(name, name)
        for name in (
            "precision", "operands", "products", "unit roundoff", "range", "CPU", "GPU", "what",
        )
    ]  # fmt: skip
    return markdown_table(columns, [_precision_row(p) for p in PRECISIONS.values()])


def _precision_row(precision: Precision) -> dict[str, str]:
    bits = f"{precision.terms} x {precision.operand.significand} bits"
    exact = precision.exact_operands
    operand = precision.operand
    normal = f"2^{operand.min_exponent} to 2^{math.frexp(operand.largest)[1]}"
    return {
        "precision": precision.name,
        "operands": bits,
        "products": str(len(precision.products)),
        "unit roundoff": number(precision.u, scientific=True),
        "range": f"2^{precision.full_range} in a line" if precision.scaled else normal,
        "CPU": "NumPy's BLAS" if exact else "rounded as on the GPU, then BLAS",
        "GPU": f"from {precision.min_sm / 10:.1f}, {'cuBLAS' if exact else 'our kernel'}",
        "what": precision.summary,
    }


def devices_table(_: Path) -> str:
    """Return the GPUs that the kernels are compiled for."""
    columns = [Column(name, name) for name in ("compute capability", "compiled for", "cards")]
    rows = [
        {"compute capability": f"{a.sm / 10:.1f}", "compiled for": a.target, "cards": a.name}
        for a in ARCHITECTURES
    ]
    return markdown_table(columns, rows)


def kinds_table(_: Path) -> str:
    """Return the kinds of workloads: what computes each, and along which axes it may be cut."""
    lines = ["| kind | what | by | cut along | other products |", "|---|---|---|---|---|"]
    for name, kind in KINDS.items():
        what = str(kind.case_type.__doc__).partition("\n")[0]
        package = (
            f"[{kind.operation}](kernels/{kind.operation}.md)" if kind.operation else "several"
        )
        axes, others = (", ".join(one) or "–" for one in (kind.splits, kind.variants))
        lines.append(
            f"| [{name}](../config/README.md#{name}) | {what} | {package} | {axes} | {others} |"
        )
    return "\n".join(lines) + "\n"
