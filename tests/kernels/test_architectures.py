"""Every architecture, without a GPU: which row a card takes, what runs there, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from argand import PRECISIONS, Device, DeviceError
from argand.device import ARCHITECTURES, Arch, arch_for
from argand.dft.heuristics import choose as choose_transform
from argand.dft.heuristics import own_plan
from argand.dft.legality import check_dft_plan
from argand.dft.method import method_for
from argand.gates.heuristics import GateTraits, plan_gate
from argand.gates.plan import GatePlan, check_gate_plan
from argand.gemm.families import require_family
from argand.gemm.heuristics import choose
from argand.gemm.modular.product_plan import plans_of
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm80.legality import check_mma_plan
from argand.precision import Precision
from argand.runtime.compile.compiler import compile_cubin
from argand.runtime.plan import WGMMA_TARGET, PlanError
from argand.softmax.candidates import fitted
from argand.softmax.heuristics import plan_softmax
from argand.softmax.legality import check_softmax_plan
from argand.softmax.plan import SoftmaxForm

from tests.kernels.gemm.sm80.mma_plans import mma_plan
from tests.kernels.precisions import SOFTMAX, TENSOR

OTHERS = [arch for arch in ARCHITECTURES if arch.target != WGMMA_TARGET]
SIZES = GemmSizes(1, 4096, 4096, 4096)


NEWEST = {arch.sm // 10: arch.target for arch in ARCHITECTURES}
"""The target of the newest row of each generation."""


@pytest.mark.parametrize(
    ("sm", "target"),
    [*((arch.sm, arch.target) for arch in ARCHITECTURES), (87, "sm_86"),
     *((10 * generation + 9, target) for generation, target in NEWEST.items() if generation > 9)],
)  # fmt: skip
def test_a_card_runs_the_newest_row_of_its_generation(sm: int, target: str) -> None:
    assert arch_for(sm).target == target


@pytest.mark.parametrize("sm", [70, 75, *{110, 130} - {10 * one for one in NEWEST}])
def test_a_card_without_a_row_is_refused_with_those_that_there_are(sm: int) -> None:
    with pytest.raises(DeviceError) as raised:
        arch_for(sm)
    every = ", ".join(f"{arch.sm / 10:.1f}" for arch in ARCHITECTURES)
    assert str(raised.value).endswith(f"{sm / 10:.1f}; there are for {every}")


@pytest.mark.parametrize("arch", ARCHITECTURES, ids=lambda arch: arch.target)
def test_nvrtc_knows_the_target(arch: Arch) -> None:
    cubin = compile_cubin('extern "C" __global__ void f() {}', arch.target)
    assert set(cubin.resources) == {"f"}


@pytest.mark.parametrize("arch", ARCHITECTURES, ids=lambda arch: arch.target)
@pytest.mark.parametrize("precision", TENSOR)
def test_every_operation_has_a_legal_plan(arch: Arch, precision: str) -> None:
    row = PRECISIONS[precision]
    if arch.sm < row.min_sm:
        assert_refused(row, arch)
        return
    product = mma_plan(row, arch, batch=1, m=4096, n=4096, k=4096, sm_count=100, vector=2)
    check_mma_plan(product, row, arch)
    form = SoftmaxForm("softmax", "fp32", "fp32", row, 4, False)
    for columns in (1000, 1 << 20) if precision in SOFTMAX else ():
        plan = plan_softmax(form, arch, rows=512, columns=columns, sm_count=100)
        check_softmax_plan(plan, form, arch)
    for length in (127, 1009, 20_011):
        transform = own_plan(method_for(length), row, arch, wide=False)
        assert transform is not None
        check_dft_plan(transform, row, arch)
    gate = plan_gate(GateTraits(5, 1 << 20), row, arch, 100)
    assert gate is not None
    check_gate_plan(gate, arch)


def assert_refused(row: Precision, arch: Arch) -> None:
    form = SoftmaxForm("softmax", "fp32", "fp32", row, 4, False)
    gate = GatePlan("mma", 5, row, targets_qubit0=False, stages=2, blocks=1)
    for attempt in (
        lambda: mma_plan(row, arch, batch=1, m=64, n=64, k=64, sm_count=100),
        lambda: choose(Question(row, SIZES, OperandTraits(), OperandTraits()), arch, 100),
        lambda: check_softmax_plan(fitted(form, 256, 1, 4096), form, arch),
        lambda: choose_transform(method_for(127), row, arch, wide=False),
        lambda: check_gate_plan(gate, arch),
    ):
        with pytest.raises(PlanError) as raised:
            attempt()
        assert str(raised.value).startswith(
            f"{row.name} needs compute capability {row.min_sm / 10:.1f}, and {arch.name} has "
            f"{arch.sm / 10:.1f}, which computes fp64, fp32, tf32, "
        )


def test_a_precision_that_a_card_lacks_is_refused_with_those_that_it_has() -> None:
    assert_refused(replace(PRECISIONS["fp16"], min_sm=89), arch_for(80))


@pytest.mark.parametrize("arch", OTHERS, ids=lambda arch: arch.target)
def test_what_only_hopper_has_is_refused_with_what_runs_instead(arch: Arch) -> None:
    card = Device("cuda", "a card", arch=arch)
    with pytest.raises(DeviceError) as raised:
        require_family("wgmma", card)
    assert (
        str(raised.value) == f"wgmma needs sm_90a, and a card is {arch.target}, which has mma.sync"
    )
    require_family("mma.sync", card)
    planes, row = OperandTraits(packed=True), PRECISIONS["fp16"]
    with pytest.raises(PlanError, match=r"mma\.sync takes complex64 and gives it, on every card"):
        choose(Question(row, SIZES, planes, OperandTraits()), arch, 100)
    assert (
        choose(Question(row, SIZES, OperandTraits(), OperandTraits()), arch, 100).family
        == "mma.sync"
    )
    with pytest.raises(PlanError, match=r"no kernels of wgmma for exact products, but mma\.sync"):
        plans_of(arch, "wgmma")
    assert {plan.family for plan in plans_of(arch)} == {"mma.sync"}
