"""Every plan of a softmax at many widths: the times that ``softmax/thread_tables.py`` is made from.

    python -m benchmarks.softmax.plans --kinds fp32,fp16 --columns 256,1000,65536 --csv out.csv

Each line is one width: the copy rate of the same bytes, the fastest plans, and the plan that a call
takes. Results are compared with fp64 on some rows, so that a wrong kernel is not a fast one.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from argand import PRECISIONS
from argand.device import Arch, gpu
from argand.runtime.compile.compiler import compile_all
from argand.softmax.candidates import candidates
from argand.softmax.formats import COMPLEX_KINDS, ELEMENT_BYTES, REAL_KINDS
from argand.softmax.heuristics import choose_vector, plan_softmax
from argand.softmax.plan import LINE_BYTES, RowPlan, SoftmaxForm, vector_for
from argand.softmax.rings import with_lines
from argand.softmax.source import softmax_source

from benchmarks.harness.tables import Table, median_seconds, parser, shown
from benchmarks.softmax.cases import Case, logits

_WIDTHS = (
    16, 17, 33, 64, 100, 256, 1000, 1024, 2048, 4096, 8192, 12289, 16384, 32768, 50257, 65536,
    131072, 262144, 524288, 1 << 20,
)  # fmt: skip
_CHECKED_ROWS = 8
_SEED, _SCALE = 1, 4.0
HELD = ("resident", "staged", "streamed", "ring", "slab")


class PlannedCase(Case):
    """A case and the forms that contiguous arrays of it have."""

    @property
    def forms(self) -> list[SoftmaxForm]:
        """Forms with full accesses, and with the largest that no row's edge cuts."""
        most = vector_for(self.kind, self.output)
        even = math.gcd(most, self.columns)
        of_line = math.gcd(LINE_BYTES // ELEMENT_BYTES[self.kind], self.columns)
        forms = [
            SoftmaxForm(
                "softmax",
                self.kind,
                self.output,
                PRECISIONS["fp32"],
                vector,
                unaligned_rows=even % vector > 0,
                gapless=True,
            )
            for vector in sorted({most, even})
        ]
        device = gpu(0)
        return [
            with_lines(
                form, device.require_arch(), rows=self.rows, columns=self.columns, even=of_line,
                sm_count=device.sm_count,
            )
            for form in forms
        ]  # fmt: skip

    @property
    def taken(self) -> SoftmaxForm:
        """The form that a call takes."""
        most = vector_for(self.kind, self.output)
        chosen = choose_vector(most, math.gcd(most, self.columns), self.columns, "softmax")
        return next(form for form in self.forms if form.vector == chosen)

    @property
    def bytes(self) -> int:
        """Bytes of all rows and of the result."""
        each = ELEMENT_BYTES[self.kind] + ELEMENT_BYTES[self.output]
        return self.rows * self.columns * each


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; the exit status is 1 where a plan's result was wrong."""
    arguments = _parser().parse_args(argv)
    cases = [
        PlannedCase(rows or max(1, arguments.values // columns), columns, kind)
        for kind in arguments.kinds
        for columns in arguments.columns
        for rows in arguments.rows
    ]
    arch = gpu(0).require_arch()
    plans = {one for case in cases for one in _plans(case, arch, arguments.held)}
    compile_all((softmax_source(form, plan), arch.target) for form, plan in plans)
    table = Table(arguments.csv)
    for case in cases:
        copied, rows = _measured(case, arch, arguments.repeats, arguments.held)
        table.add(rows, _line(case, copied, rows))
    return table.status("right")


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    found.add_argument("--kinds", type=lambda text: text.split(","), default=["fp32"])
    found.add_argument("--columns", type=numbers, default=list(_WIDTHS))
    found.add_argument("--rows", type=numbers, default=[0], help="0: as many as --values make")
    found.add_argument("--values", type=int, default=1 << 29)
    found.add_argument("--repeats", type=int, default=5)
    found.add_argument(
        "--held", choices=HELD, nargs="+", default=list(HELD), help="only plans that hold rows so"
    )
    return found


_Plan = tuple[SoftmaxForm, RowPlan]


def _plans(case: PlannedCase, arch: Arch, held: Sequence[str]) -> list[_Plan]:
    """Return the plan of a call, and all other candidate plans that hold rows as ``held`` says."""
    form = case.taken
    sm_count = gpu(0).sm_count
    plan = plan_softmax(form, arch, rows=case.rows, columns=case.columns, sm_count=sm_count)
    every = [
        (form, plan)
        for form in case.forms
        for plan in candidates(form, arch, sm_count, case.columns)
        if plan.kind in held
    ]
    return list(dict.fromkeys([(form, plan), *every]))


def _measured(
    case: PlannedCase, arch: Arch, repeats: int, held: Sequence[str]
) -> tuple[float, list[dict[str, Any]]]:
    """Return the seconds of a copy of the same bytes, and a row for each plan."""
    from argand.softmax.gpu import PLAN_OVERRIDE

    x, out = operands(case)
    copied = case.bytes / _copy_rate(x, repeats)
    found = []
    taken, *_ = plans = _plans(case, arch, held)
    for form, plan in plans:
        out[...] = 0xFFFF if out.dtype.kind == "u" else np.nan
        with PLAN_OVERRIDE.use((plan, form.vector)):
            try:
                seconds = median_seconds(lambda: run(case, x, out), repeats)
            except RuntimeError as error:  # of the driver too: more blocks than run at a time
                print(f"{plan}: {error}")
                continue
        good, worst = right(case, x, out)
        rate = case.bytes / seconds / 1e9
        found.append({
            "kind": case.kind, "rows": case.rows, "columns": case.columns,
            "row_threads": plan.row_threads, "block_threads": plan.block_threads,
            "values": plan.values, "cluster": plan.cluster,
            "resident": plan.resident, "staged": plan.staged, "blocks": plan.blocks,
            "stages": plan.load_stages, "lag": plan.epilogue_stages,
            "slabs": plan.slab_stages, "bulk": plan.bulk,
            "vector": form.vector, "taken": (form, plan) == taken,
            "time_us": 1e6 * seconds, "gbytes_per_s": rate, "of_copy": copied / seconds,
            "worst": worst, "right": good,
        })  # fmt: skip
    return copied, found


def operands(case: Case) -> tuple[Any, Any]:
    """Return random x of a case on the GPU, and a place for the result."""
    import cupy

    x = logits(case, _SEED, _SCALE, gpu(0))
    return x, cupy.empty(x.shape, REAL_KINDS[case.output])


def _copy_rate(x: Any, repeats: int) -> float:
    """Return the bytes read and written a second."""
    import cupy

    target = cupy.empty_like(x)
    return 2 * float(x.nbytes) / median_seconds(lambda: cupy.copyto(target, x), repeats)


def run(case: Case, x: Any, out: Any) -> None:
    """Run the softmax of a case."""
    from argand import softmax

    bf16 = case.kind == "bf16"
    softmax(
        x, power=case.kind in COMPLEX_KINDS, format="bf16" if bf16 else None,
        output=case.output, out=out,
    )  # fmt: skip


def right(case: Case, x: Any, out: Any) -> tuple[bool, float]:
    """Return whether some rows agree with fp64, and the largest error over the allowed one."""
    import cupy

    rows = cupy.linspace(0, case.rows - 1, min(case.rows, _CHECKED_ROWS)).astype(int)
    given, got = x[rows], out[rows]
    if case.kind == "bf16":
        given, got = ((y.astype(cupy.uint32) << 16).view(cupy.float32) for y in (given, got))
    exact = given.astype(cupy.complex128 if given.dtype.kind == "c" else cupy.float64)
    power = exact.real**2 + exact.imag**2 if given.dtype.kind == "c" else exact
    e = cupy.exp(power - power.max(axis=-1, keepdims=True))
    e /= e.sum(axis=-1, keepdims=True)
    # Two ulp of fp32 (of a power eight: it is rounded itself), half an ulp of 16 bits and a little.
    ulp = {"fp32": 2 * 2.0**-23, "complex64": 64 * 2.0**-23, "fp16": 0.51 * 2.0**-10,
           "bf16": 0.51 * 2.0**-7, "fp64": 32 * 2.0**-52}[case.kind]  # fmt: skip
    floor = {"fp16": 2.0**-25, "fp64": 0.0}.get(case.kind, 2.0**-126)
    worst = float((cupy.abs(got.astype(cupy.float64) - e) / (ulp * e + floor)).max())
    finite = bool(cupy.isfinite(out.view(cupy.float16) if case.kind == "fp16" else got).all())
    return worst <= 1 and finite, worst


def _line(case: PlannedCase, copied: float, found: list[dict[str, Any]]) -> str:
    def one(row: Mapping[str, Any]) -> str:
        how = "p" if row["staged"] else "" if row["resident"] else "s"
        how = f"r{row['stages']}l{row['lag']}" if row["stages"] else how
        how = f"b{row['slabs']}{'t' * row['bulk']}" if row["slabs"] else how
        mark = ("*" if row["taken"] else "") + ("" if row["right"] else f"!{row['worst']:.2g}")
        shape = f"{row['row_threads']}t{row['cluster']}c{row['values']}/{row['vector']}{how}{mark}"
        return f"{shape} {row['of_copy']:.3f}"

    rate = case.bytes / copied / 1e9
    plans = ", ".join(map(one, shown(found, 7)))
    return f"{case.kind} {case.rows}x{case.columns} copy {rate:.0f} GB/s: {plans}"


if __name__ == "__main__":
    sys.exit(main())
