"""The Hopper kernels, each tile, storage and role, on small and ragged shapes (an sm_90 GPU)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, gemm, launched
from argand.device import Device
from argand.gemm.pack.plan import PackPlan, panel_rows, panels_resident, pitch_of
from argand.gemm.question import GemmSizes
from argand.gemm.sm90.scheduler import divide, min_saved_k

from tests.kernels.gemm.product_cases import OPS, SHAPES, check, normal, repeats_bit_for_bit, stored
from tests.kernels.gemm.sm90.wgmma_cases import choices, first_choices, overridden
from tests.kernels.precisions import TENSOR
from tests.kernels.runtime.launch.graph_cases import forget_calls

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]
Array = npt.NDArray[Any]


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize(
    "shape", [(1, 130, 70, 66), (2, 68, 200, 40), (1, 131, 201, 46)], ids="x".join(["{0}"]).format
)
def test_every_plan(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int, int]
) -> None:
    batch, m, n, k = shape
    a, b = normal(rng, batch, m, k), normal(rng, batch, k, n)
    for choice in choices(cp, precision, GemmSizes(batch, m, n, k)):
        with overridden(choice):
            check(cp, a, b, precision=precision)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("shape", SHAPES, ids="x".join(["{0[0]}", "{0[1]}", "{0[2]}"]).format)
def test_shapes(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int]
) -> None:
    """Odd pitches are read by even and odd lines, or packed; even ones where they lie."""
    m, n, k = shape
    a, b = normal(rng, m, k), normal(rng, k, n)
    for choice in first_choices(cp, precision, GemmSizes(1, m, n, k)):
        with overridden(choice):
            check(cp, a, b, precision=precision)


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_ops_with_alpha_and_beta(
    cp: Any, rng: np.random.Generator, precision: str, op_a: str, op_b: str
) -> None:
    a, b, c = normal(rng, 38, 50), normal(rng, 50, 44), normal(rng, 38, 44)
    sizes = GemmSizes(1, 38, 44, 50)
    for choice in first_choices(cp, precision, sizes):
        with overridden(choice):
            check(
                cp, stored(a, op_a), stored(b, op_b), c, op_a=op_a, op_b=op_b,
                precision=precision, alpha=0.5 - 2j, beta=-1.25 + 0.75j,
            )  # fmt: skip


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize(
    ("left", "right"), [((5,), (5,)), ((1,), (4,)), ((3, 1), (1, 2)), ((2, 3), ()), ((), (2, 2))]
)
def test_batches(
    cp: Any, rng: np.random.Generator, precision: str, left: tuple[int, ...],
    right: tuple[int, ...],
) -> None:  # fmt: skip
    a, b = normal(rng, *left, 20, 34), normal(rng, *right, 34, 22)
    batch = int(np.prod(np.broadcast_shapes(left, right)))
    for choice in first_choices(cp, precision, GemmSizes(batch, 20, 22, 34)):
        with overridden(choice):
            check(cp, a, b, precision=precision)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize(("m", "n"), [(20, 36), (21, 35)])
def test_split_k_slices(cp: Any, rng: np.random.Generator, precision: str, m: int, n: int) -> None:
    """Rows of slices have one number more where that of columns is odd."""
    a, b, c = normal(rng, m, 5000), normal(rng, 5000, n), normal(rng, m, n)
    sliced = [x for x in choices(cp, precision, GemmSizes(1, m, n, 5000)) if x.split_k_slices > 1]
    assert {choice.split_k_slices for choice in sliced} >= {2, 4, 8}
    for choice in sliced:
        with overridden(choice):
            check(cp, a, b, c, precision=precision, alpha=1j, beta=0.5, op_a="N")


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("shape", [(1, 70, 200, 3000), (3, 600, 500, 700), (1, 900, 1100, 513)])
def test_tiles_that_are_split_along_k(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int, int]
) -> None:
    """Few tiles, all of them split; and many, of which the last are."""
    from argand.device import gpu

    batch, m, n, k = shape
    sm_count = gpu(cp.cuda.Device().id).sm_count
    a, b, c = normal(rng, batch, m, k), normal(rng, batch, k, n), normal(rng, batch, m, n)
    split = 0
    for choice in choices(cp, precision, GemmSizes(batch, m, n, k)):
        plan = choice.wgmma
        assert plan is not None
        rows, columns = (n, m) if choice.swapped else (m, n)
        tiles = batch * -(-rows // plan.block_m) * -(-columns // plan.block_n)
        saved_k = min_saved_k(plan, PRECISIONS[precision])
        divided = divide(tiles, sm_count, -(-k // plan.block_k), plan.block_k, saved_k=saved_k)
        if choice.split_k_slices > 1 or not divided.stream_k_tiles:
            continue
        split += 1
        with overridden(choice):
            check(cp, a, b, c, precision=precision, alpha=1j, beta=0.5)
            left, right = cp.asarray(a), cp.asarray(b)
            assert repeats_bit_for_bit(partial(gemm, left, right, precision=precision))
    assert split


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("shape", [(1, 1540, 1500, 308), (9, 500, 700, 260)], ids=str)
def test_blocks_that_take_several_tiles(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int, int]
) -> None:
    """The epilogue overlaps the next tile's mainloop where alpha is real and beta 0."""
    batch, m, n, k = shape
    a, b = normal(rng, batch, m, k), normal(rng, batch, n, k)
    for choice in first_choices(cp, precision, GemmSizes(*shape), k_major=True):
        with overridden(choice):
            check(cp, a, b, precision=precision, alpha=-0.5, op_b="C")


def test_an_overlapped_epilogue_changes_no_bit(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At tf32 alone. Tiles of so short a k are not split, so that both divide the work alike."""
    from argand.gemm.sm90 import launch_plan as sm90_launch_plan

    a, b = cp.asarray(normal(rng, 1540, 126)), cp.asarray(normal(rng, 126, 1500))
    results = []
    overlapped = []
    for most in (sm90_launch_plan._MAX_OVERLAP_DELAY, -1.0):
        monkeypatch.setattr(sm90_launch_plan, "_MAX_OVERLAP_DELAY", most)
        results.append([])
        overlapped.append([])
        forget_calls()
        for choice in first_choices(cp, "tf32", GemmSizes(1, 1540, 1500, 126)):
            with overridden(choice), launched() as names:
                results[-1].append(gemm(a, b, precision="tf32"))
            assert "stream-K" not in names[0]
            overlapped[-1].append("overlapped epilogue" in names[0])
    with_overlap, without = overlapped
    assert any(with_overlap)
    assert not any(without)
    assert all(bool((x == y).all()) for x, y in zip(*results, strict=True))


@pytest.mark.parametrize("precision", ["fp16", "3xfp16"])
@pytest.mark.parametrize("k", [16000, 50000])
def test_rows_that_are_scaled_in_one_launch_and_in_two(
    cp: Any, rng: np.random.Generator, gpu: Device, precision: str, k: int
) -> None:
    """On an H200 a panel of the longer one has too many blocks to be resident."""
    pack = PackPlan(rows=panel_rows(PRECISIONS[precision], half_source=False, pitch=pitch_of(k)))
    assert panels_resident(pack, pitch_of(k), gpu.sm_count) == (k == 16000)
    a, b = normal(rng, 70, k), normal(rng, k, 66)
    for choice in first_choices(cp, precision, GemmSizes(1, 70, 66, k)):
        with overridden(choice):
            check(cp, a, b, precision=precision)
            check(cp, 1e-6 * a, 1e6 * b, precision=precision)


def test_a_tensor_map_that_was_moved_is_that_of_the_new_place(cp: Any) -> None:
    from argand.runtime.launch.tensor_map import WORDS, MovingMap, TensorMap, tensor_map

    arrays = [cp.empty((64, 64), cp.complex64) for _ in range(3)]
    places = [x.data.ptr for x in arrays]
    assert len(set(places)) == len(places)

    def described(address: int) -> TensorMap:
        return tensor_map(address, 8, (64, 64, 1), (512, 64 * 512), (16, 64, 1), 128)

    words = memoryview(bytearray(8 * WORDS)).cast("Q")
    moving = MovingMap(described, words)
    for address in places:
        moving.move(address)
        assert tuple(words) == described(address).words
        if moving.by_word:  # then launches write it themselves
            words[0] = places[0]
            assert tuple(words) == described(places[0]).words
    by_driver = described(places[0])
    by_driver.move(places[1])
    assert by_driver.words == described(places[1]).words != described(places[0]).words


@pytest.mark.parametrize("precision", TENSOR)
def test_operands_may_lie_elsewhere_in_every_call(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    places = [(normal(rng, 130, 70), normal(rng, 70, 66)) for _ in range(3)]
    for choice in first_choices(cp, precision, GemmSizes(1, 130, 66, 70)):
        with overridden(choice):
            for a, b in (*places, *places):
                check(cp, a, b, precision=precision)
