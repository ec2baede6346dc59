"""The workspace that an error names suffices, and no launch takes more than its choice counts.

Launches are prepared for an H200 without a GPU: their kernels are not compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import HOPPER, Device, arch_for
from argand.gemm.problem import GemmProblem

from tests.covers import examples
from tests.kernels.without_device import without_device

CARD = Device("cuda", "NVIDIA H200", arch=arch_for(HOPPER), cores=132, cache_bytes=50 << 20)
TENSOR = ("tf32", "3xtf32", "fp16", "3xfp16", "bf16")
LAUNCHES = (
    "sm90.launch", "sm90.call", "sm90.splitk_launch", "sm80.launch", "fma.launch", "pack.launch",
    "absmax_launch",
)  # fmt: skip


class Unlaunched:
    """In the place of kernels, and of launches in order."""

    waits = True

    def __init__(self, *_: Any, **__: Any) -> None:
        pass


@pytest.fixture(scope="module")
def modules() -> Iterator[Any]:
    """Modules of argand that prepare launches on a card that is not there."""
    with without_device("gemm.prepare") as (_, prepare), pytest.MonkeyPatch.context() as patch:
        for name in LAUNCHES:
            module = import_module(f"argand.gemm.{name}")
            for kernel in ("PendingKernel", "BoundKernel", "LaunchSequence", "bound_kernel"):
                if hasattr(module, kernel):
                    patch.setattr(module, kernel, Unlaunched)
        for module in (prepare, prepare.tuned):
            patch.setattr(module, "gpu", lambda _: CARD)
        patch.setattr(prepare.tuned, "lookup", lambda *_: None)
        names = {
            "form": "gemm.product_form", "layout": "runtime.calls.layout",
            "candidates": "gemm.candidates", "limit": "runtime.memory.workspace_limit",
            "workspace": "gemm.choice_workspace", "plan": "runtime.plan",
        }  # fmt: skip
        found = {name: import_module(f"argand.{path}") for name, path in names.items()}
        yield SimpleNamespace(prepare=prepare, **found)


def drawn(modules: Any, rng: np.random.Generator, kernels: Any) -> Any:
    """Return the form of a product: of sizes, types, strides and addresses of many kinds."""
    precision = PRECISIONS[str(rng.choice(TENSOR))]
    batch = int(rng.choice([1, 1, 2, 3, rng.integers(4, 50)]))
    m, n = (int(rng.integers(1, rng.choice([70, 400, 2000]))) for _ in range(2))
    k = int(rng.integers(1, rng.choice([70, 400, 2000, 40_000])))  # accumulators of long ones spill
    pairs = precision.name in ("fp16", "bf16") and rng.random() < 0.3
    triangle = bool(rng.random() < 0.2)
    kinds = ["complex64"] * 4 + ["power"] + ["complex-half"] * (2 * pairs)
    output: Any = "complex64" if triangle else str(rng.choice(kinds))
    beta = 0.5 * (rng.random() < 0.3)
    n = m if triangle else n
    problem = GemmProblem(
        (batch,), m, n, k, "N", "C" if triangle else "N", 1 + 0j, complex(beta), precision, output,
        kernels=kernels, triangle=triangle, mirror=triangle,
    )  # fmt: skip
    a = drawn_operand(modules, rng, batch, m, k, pairs=pairs, packed=not triangle)
    b = drawn_operand(modules, rng, batch, n, k, pairs=pairs, packed=not triangle)
    if triangle:
        b = modules.form.OperandForm(a.layout, a.half, not a.conjugated, a.batched)
    c = drawn_result(modules, rng, batch, m, n, 8) if beta else None
    item = 8 if output == "complex64" else 4
    return modules.form.ProductForm(problem, a, b, c, drawn_result(modules, rng, batch, m, n, item))


def drawn_operand(
    modules: Any, rng: np.random.Generator, batch: int, rows: int, k: int, *, pairs: bool,
    packed: bool,
) -> Any:  # fmt: skip
    conjugated = bool(rng.random() < 0.3)
    if packed and rng.random() < 0.1:
        return modules.form.OperandForm(None, False, conjugated, batch > 1)
    lines, inner = (rows, k) if rng.random() < 0.5 else (k, rows)
    step = int(rng.choice([1] * 8 + [2]))
    pitch = (inner + int(rng.choice([0, 0, 0, 1, 2, 3, 8]))) * step
    between = pitch * lines + int(rng.choice([0, 0, 1, 2]))
    between = 0 if batch == 1 or rng.random() < 0.2 else between
    strides = (pitch, step) if lines == rows else (step, pitch)
    item = 4 if pairs else 8
    layout = modules.layout.Layout(
        rows, k, *strides, between, item, int(rng.choice([32, 32, 16, item]))
    )
    return modules.form.OperandForm(layout, pairs, conjugated, between != 0)


def drawn_result(
    modules: Any, rng: np.random.Generator, batch: int, m: int, n: int, item: int
) -> Any:
    pitch = n + int(rng.choice([0, 0, 0, 1, 2]))
    aligned = int(rng.choice([32, 32, item]))
    return modules.layout.Layout(m, n, pitch, 1, pitch * m * (batch > 1), item, aligned)


@pytest.mark.parametrize("kernels", ["wgmma", "mma.sync", None])
def test_what_errors_say_is_enough(modules: Any, kernels: Any) -> None:
    """At it, and at what is more than it; the launches take no more than is allowed."""
    rng, refused = np.random.default_rng(1), 0
    prepared = modules.prepare._prepare_within_limit
    forms = examples(20)
    for _ in range(forms):
        form = drawn(modules, rng, kernels)
        try:
            free = prepared(form, 0, None, 0).nbytes
        except modules.plan.PlanError:  # mma.sync reads nothing that is packed
            continue
        limit = int(rng.choice([0, rng.integers(1 + free // 8)]))
        needed = limit
        try:
            assert prepared(form, 0, limit, 0).nbytes <= limit
        except modules.limit.WorkspaceError as error:
            refused, needed = refused + 1, error.needed
        taken = prepared(form, 0, needed, 0).nbytes
        if limit < taken < needed:  # else the error would say too much
            with pytest.raises(modules.limit.WorkspaceError):
                prepared(form, 0, taken, 0)
        for allowed in (needed, needed + 64, needed + int(rng.integers(1 + needed))):
            assert prepared(form, 0, allowed, 0).nbytes <= allowed
    assert refused >= forms // 2 * (kernels == "wgmma")


def test_no_launch_takes_more_than_its_choice_counts(modules: Any) -> None:
    """With a limit, nor more than that."""
    rng = np.random.default_rng(2)
    for _ in range(60):
        form = drawn(modules, rng, None)
        question = form.question()
        choices = modules.candidates.candidates(question, CARD.require_arch(), CARD.sm_count)
        for choice in rng.choice(np.array(choices, object), min(6, len(choices)), replace=False):
            counted = modules.workspace.workspace_of(choice, question)
            for allowed in (counted, counted + int(rng.integers(1 << 22))):
                launch = modules.prepare.GemmLaunch(form, choice, CARD, allowed)
                assert launch.nbytes <= allowed
