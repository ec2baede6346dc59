"""How a GPU cuts an exact product: pieces of a batch, of rows or of columns, split-K slices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from argand.device import Device, arch_for
from argand.gemm.modular.encode_plan import clustered, clustered_bytes
from argand.gemm.modular.heuristics import choose_pieces, choose_plan, choose_slices
from argand.gemm.modular.pieces import cuts_of, most_workspace, products_within
from argand.gemm.modular.problem import ModularProblem, Piece
from argand.gemm.modular.product_plan import BLOCK_K, RASTER_ROWS
from argand.multiprocessor import PORTABLE_CLUSTER
from argand.runtime.complex_types import ITEM

H200 = Device("cuda", "H200", 0, arch_for(90), 132)
A100 = Device("cuda", "A100", 0, arch_for(80), 108)


@dataclass(frozen=True)
class Lines:
    """The fields of a layout that plans read."""

    rows: int
    columns: int
    batch_stride: int = 0
    item: int = 8


def problem(
    m: int, n: int, k: int, *, batch: int = 1, count: int = 7, **more: Any
) -> ModularProblem:
    a: Any = Lines(m, k, int(batch > 1))
    b: Any = Lines(n, k, int(batch > 1))
    out: Any = Lines(m, n, int(batch > 1))
    found = ModularProblem("complex64", count, batch, a, b, None, out, False, False, 1, 0)
    return replace(found, **more)


def chosen(sizes: ModularProblem, device: Device, most: int = 1 << 20) -> int:
    ((piece,),) = cuts_of(sizes, 1 << 40)
    plan = choose_plan(sizes, piece, device, most)
    return choose_slices(sizes, piece, device, plan, most)


def test_long_k_is_split_where_tiles_do_not_fill_the_card() -> None:
    assert chosen(problem(256, 256, 262_144), H200) > 1
    assert chosen(problem(64, 64, 1 << 20), A100) > 1
    assert chosen(problem(256, 256, 262_144), H200, most=1) == 1


@pytest.mark.parametrize("sizes", [(4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 2048),
                                   (256, 256, 256), (16, 16, 1024)], ids=str)  # fmt: skip
def test_products_that_fill_the_card_or_are_short_are_not_split(
    sizes: tuple[int, int, int],
) -> None:
    assert chosen(problem(*sizes), H200) == 1


@pytest.mark.parametrize(("k", "held"), [(384, 4), (512, 4), (1000, 8), (1024, 8), (1025, 0)])
def test_columns_of_short_lines_stay_in_shared_memory(k: int, held: int) -> None:
    for sizes in (problem(1024, 1024, k, batch=64), problem(8192, 8192, k)):
        ((piece,),) = cuts_of(sizes, 1 << 40)
        plan = choose_plan(sizes, piece, H200, 5)
        assert plan.resident_tiles == held
        assert plan.takes(-(-k // BLOCK_K))
        assert plan.takes(-(-k // BLOCK_K), 2) == (not held)
        assert choose_slices(sizes, piece, H200, plan, 5) == 1


def test_pieces_of_a_batch_are_alike() -> None:
    for batch, counts in ((10, [5, 5]), (11, [6, 5])):
        sizes = problem(256, 256, 256, batch=batch)
        of_a, of_b, of_c = sizes.plane_bytes()
        seven = 7 * 256 * (of_a + of_b + 256 * of_c)
        (pieces,) = cuts_of(sizes, seven)
        assert [piece.products for piece in pieces] == counts


@pytest.mark.parametrize("limit", [0, 1 << 20, 1 << 22, 1 << 40])
def test_pieces_cover_the_batch(limit: int) -> None:
    for m, n, batch in product((300, 1000), (1, 130, 3000), (1, 7)):
        for pieces in cuts_of(problem(m, n, 500, batch=batch), limit):
            covered = np.zeros((batch, m, n), np.int8)
            for piece in pieces:
                covered[
                    piece.first_product : piece.first_product + piece.products,
                    piece.first_row : piece.first_row + piece.rows,
                    piece.first_column : piece.first_column + piece.columns,
                ] += 1
                assert piece.first_product + piece.products <= batch
                assert piece.first_row + piece.rows <= m
                assert piece.first_column + piece.columns <= n
                assert (piece.rows, piece.columns) == (m, n) or piece.products == 1
                assert piece.first_column % 128 == 0
                assert piece.rows * piece.columns <= pieces[0].rows * pieces[0].columns
            assert (covered == 1).all()
    assert Piece(0, 1, 0, 9, 0, 129).padded == 256


def taken(sizes: ModularProblem, pieces: list[Piece]) -> int:
    """Bytes of planes and residues."""
    first = {count: sizes.parts(count)[0][1] for count in {x.k_parts for x in pieces}}
    return max(first[x.k_parts].workspace_bytes(x) for x in pieces)


@pytest.mark.parametrize("count", [6, 7, 8])
def test_a_call_takes_no_more_workspace_than_operands_and_result(count: int) -> None:
    """Planes and residues; a GPU's test counts what is taken beside them too."""
    for sizes in ((9, 9, 9), (2048, 2048, 2048), (3000, 700, 90_000), (8192, 8192, 8192),
                  (9000, 20_000, 16_384), (20_000, 9000, 16_384), (130, 70, 1 << 20)):  # fmt: skip
        one = problem(*sizes, count=count)
        limit = most_workspace(one)
        assert limit == max(one.nbytes, 1 << 28)
        assert all(taken(one, pieces) <= limit for pieces in cuts_of(one, limit))
        assert choose_pieces(one, H200, limit) in cuts_of(one, limit)


@pytest.mark.parametrize("sizes", [(600, 300, 700), (257, 1300, 40), (300, 129, 1100)], ids=str)
@pytest.mark.parametrize("groups", [1, 2, 4, 5])
def test_residues_overwrite_planes_that_no_launch_reads_any_more(
    sizes: tuple[int, int, int], groups: int
) -> None:
    one = problem(*sizes)
    for rows in (sizes[0], 100):
        piece = Piece(0, 1, 0, rows, 0, sizes[1], plane_groups=groups)
        plane, residues = rows * one.pitch, rows * piece.padded
        memory = np.full(one.workspace_bytes(piece) - one.piece_bytes(piece)[1], -1)
        first_a = one.planes_offset(piece) if groups > 1 else 14 * residues
        assert first_a + 14 * plane <= memory.size
        for p in range(14):
            memory[first_a + p * plane :][:plane] = p
        for first, count in one.plane_groups(piece):
            memory[first * residues : (first + count) * residues] = 100
            for p in range(first, 14):
                assert (memory[first_a + p * plane :][:plane] == p).all()
        assert one.plane_groups(piece)[-1][0] < 14 == sum(x for _, x in one.plane_groups(piece))
        assert (memory == 100).sum() == 14 * residues


@pytest.mark.parametrize("count", [8, 16])
def test_panels_have_more_rows_where_residues_overwrite_planes(count: int) -> None:
    one = problem(4096, 4096, 4096, count=count)
    limit = most_workspace(one) * count // 8
    first = choose_pieces(one, H200, limit)[0]
    alone = max(x[0].rows for x in cuts_of(one, limit) if x[0].columns == 4096
                and x[0].plane_groups == x[0].k_parts == 1)  # fmt: skip
    assert first.plane_groups > 1
    assert first.rows > alone
    assert one.workspace_bytes(first) <= limit


@pytest.mark.parametrize("count", [7, 16])
@pytest.mark.parametrize("n", [2048, 4096, 8192])
def test_blocks_fit_into_little_workspace(n: int, count: int) -> None:
    one = problem(n, n, n, count=count)
    for limit in (128 << 20, 32 << 20):
        assert all(taken(one, pieces) <= limit for pieces in cuts_of(one, limit))


@pytest.mark.parametrize("more", [
    {"batch": 3}, {"proved": "row"}, {"batch": 2, "proved": "row"}, {"a_packed": True},
    {"b_packed": True}, {"a_packed": True, "b_packed": True, "batch": 2},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("n", [2048, 8192])
def test_blocks_of_what_is_more_than_one_product_alone(n: int, more: dict[str, Any]) -> None:
    one = problem(n, n, n, **more)
    for limit in (128 << 20, 32 << 20):
        assert taken(one, choose_pieces(one, H200, limit)) <= limit


def test_few_products_of_a_batch_are_launched_together_within_little_workspace() -> None:
    small = problem(16, 16, 64, batch=100_000)
    assert products_within(small, 10**400) == 100_000
    count = products_within(small, 1 << 20)
    assert 100 < count < 20_000
    assert 12 * 32 * count <= 1 << 18
    # One that does not fit is cut by itself, where nothing of it is packed with others.
    large = problem(4096, 4096, 4096, batch=5)
    assert products_within(large, 32 << 20) == 1
    assert products_within(replace(large, b_packed=True), 32 << 20) == 5
    shared = replace(large, b=replace(large.b, batch_stride=0), b_packed=True)
    assert products_within(shared, 32 << 20) == 1


def test_the_smallest_blocks_take_the_least() -> None:
    """In parts of k, but where norms of many lines take more than planes of a short k."""
    for sizes, parts in (((4096, 4096, 4096), 16), ((20_000, 20_000, 300), 1), ((90, 70, 9), 1)):
        ((first, *_),) = cuts_of(problem(*sizes), 0)
        assert (first.rows, first.columns) == (min(128, sizes[0]), min(128, sizes[1]))
        assert first.k_parts == parts
        ((first, *_),) = cuts_of(problem(*sizes, a_packed=True), 0)
        assert first.k_parts == 1


@pytest.mark.parametrize("n", [2048, 4096, 8192, 16_384])
def test_no_operand_is_encoded_twice_in_both_directions_without_a_limit(n: int) -> None:
    one = problem(n, n, n)
    first = choose_pieces(one, H200, most_workspace(one))[0]
    assert n in (first.rows, first.columns)


@pytest.mark.parametrize("by_columns", [False, True])
def test_neighbours_share_the_side_that_is_encoded_less(by_columns: bool) -> None:
    sizes = (8192, 2048) if by_columns else (2048, 8192)
    found = choose_pieces(problem(*sizes, 256), H200, 1 << 23)
    first, second = found[:2]
    assert first.rows < sizes[0]
    assert first.columns < sizes[1]
    assert first.k_parts == 1
    assert (first.columns_of(False) == second.columns_of(False)) == by_columns
    assert (first.rows_of(False) == second.rows_of(False)) != by_columns


@pytest.mark.parametrize("n", [8192, 16_384])
def test_panels_are_whole_groups_of_rows_that_are_rasterized(n: int) -> None:
    """Others read columns again for a few rows; panels of columns read all rows of A again."""
    one = problem(n, n, n)
    first = choose_pieces(one, H200, most_workspace(one))[0]
    groups = -(-first.rows // RASTER_ROWS)
    assert first.columns == n
    assert first.rows > 0.8 * groups * RASTER_ROWS


def test_long_k_goes_in_parts() -> None:
    (piece,) = choose_pieces(problem(1024, 1024, 65_536), H200, 1 << 30)
    assert (piece.rows, piece.columns) == (1024, 1024)
    assert piece.k_parts > 1
    assert choose_pieces(problem(4096, 4096, 4096), H200, 3 << 27)[0].k_parts == 1


@pytest.mark.parametrize("k", [1, 256, 257, 4096, 100_000])
def test_parts_of_k_are_whole_blocks_and_cover_it(k: int) -> None:
    for count in (1, 2, 3, 7, 1000):
        parts = problem(300, 200, k).parts(count)
        assert 1 <= len(parts) <= count
        ends = [first + part.a.columns for first, part in parts]
        assert [first for first, _ in parts] == [0, *ends[:-1]]
        assert ends[-1] == k
        assert all(part.a.columns == part.b.columns <= parts[0][1].a.columns for _, part in parts)
        assert not any(first % 256 for first, _ in parts)


def test_a_cluster_holds_all_blocks_of_a_line_and_none_of_its_ctas_is_idle() -> None:
    for k_blocks in range(1, 2 * PORTABLE_CLUSTER + 1):
        found = clustered(k_blocks)
        assert found is not None
        cluster, blocks = found
        assert cluster <= PORTABLE_CLUSTER
        assert (cluster - 1) * blocks < k_blocks <= cluster * blocks
        assert max(clustered_bytes(item, blocks) for item in ITEM.values()) <= 227 << 10
    assert clustered(2 * PORTABLE_CLUSTER + 1) is None
