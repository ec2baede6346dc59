"""cuBLASLt as a peer, without it: the structures, what is asked of it, and the planes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from argand import to_pairs

from benchmarks.peers import CannotRunError
from benchmarks.peers import _cublaslt as cublaslt
from benchmarks.peers._cublaslt import HeuristicResult, Lt, Planes
from benchmarks.peers.cublaslt_planar import Stored, candidates, joined, right_operand


class Library:
    """Stands in for the library: notes each call, and hands out numbered descriptors."""

    def __init__(self, offers: int = 2, status: dict[str, int] | None = None) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.offers = offers
        self.status = status or {}

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.calls.append((name, arguments))
            if name == "cublasLtMatmulAlgoGetHeuristic":
                results, returned = arguments[-2:]
                returned._obj.value = self.offers
                for index in range(self.offers):
                    results[index].workspace_bytes = index
            elif name.endswith("Create"):
                arguments[0]._obj.value = len(self.calls)
            return self.status.get(name, 0)

        return call

    def attributes(self) -> list[tuple[str, int, int, int]]:
        """(function, attribute, value, bytes) of everything that was set."""
        return [
            (name, arguments[1], arguments[2]._obj.value, arguments[3])
            for name, arguments in self.calls
            if name.endswith("SetAttribute")
        ]


def test_structures_have_the_sizes_of_the_header() -> None:
    assert ctypes.sizeof(cublaslt.Algorithm) == 64
    assert ctypes.sizeof(HeuristicResult) == 96
    offsets = {name: getattr(HeuristicResult, name).offset for name, _ in HeuristicResult._fields_}
    assert offsets == {
        "algorithm": 0, "workspace_bytes": 64, "state": 72, "waves": 76, "reserved": 80,
    }  # fmt: skip


def test_a_layout_says_where_the_imaginary_plane_and_the_next_matrix_lie() -> None:
    library = Library()
    Lt(library).layout(Planes(cublaslt.CUDA_C_16F, 12, 7, 2048, batch=3))
    create = next(a for name, a in library.calls if name == "cublasLtMatrixLayoutCreate")
    assert create[1:] == (6, 12, 7, 12)
    name = "cublasLtMatrixLayoutSetAttribute"
    assert library.attributes() == [(name, 7, 2048, 8), (name, 5, 3, 4), (name, 6, 84, 8)]


def test_one_matrix_has_no_stride() -> None:
    library = Library()
    Lt(library).layout(Planes(cublaslt.CUDA_C_32F, 12, 7, 2048, batch=1))
    assert [attribute for _, attribute, *_ in library.attributes()] == [7]


def test_an_operation_is_summed_in_fp32() -> None:
    library = Library()
    Lt(library).operation(True, False)
    create = next(a for name, a in library.calls if name == "cublasLtMatmulDescCreate")
    assert create[1:] == (68, 4)
    name = "cublasLtMatmulDescSetAttribute"
    assert library.attributes() == [(name, 3, 1, 4), (name, 4, 0, 4)]


def test_algorithms_are_those_that_the_heuristic_offers() -> None:
    layouts = tuple(ctypes.c_void_p(index) for index in (1, 2, 3))
    lt = Lt(Library(offers=3))
    found = lt.algorithms(ctypes.c_void_p(9), layouts, 1 << 20, 8)  # type: ignore[arg-type]
    assert [result.workspace_bytes for result in found] == [0, 1, 2]
    with pytest.raises(CannotRunError, match="offers no algorithm"):
        Lt(Library(offers=0)).algorithms(ctypes.c_void_p(9), layouts, 1, 8)  # type: ignore[arg-type]


def test_a_refusal_says_which_status() -> None:
    with pytest.raises(CannotRunError, match=r"cublasLtCreate: status 1 \(NOT_INITIALIZED\)"):
        Lt(Library(status={"cublasLtCreate": 1}))


def test_a_machine_without_the_library_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pathfinder = pytest.importorskip("cuda.pathfinder")

    def missing(name: str) -> None:
        raise RuntimeError(f"no {name} here\nlooked everywhere")

    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", missing)
    cublaslt.library.cache_clear()
    with pytest.raises(CannotRunError, match=r"libcublasLt is not installed: no cublasLt here$"):
        cublaslt.library()
    assert [one.name for one in candidates()] == ["cublaslt-planar"] * 4


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_planes_hold_what_was_rounded(rng: np.random.Generator, name: str) -> None:
    x = rng.standard_normal((3, 5, 14), dtype=np.float32).view(np.complex64)
    stored = Stored.of(x, name)
    assert stored.planes.shape == (2, 3, 5, 7)
    assert np.array_equal(joined(stored), to_pairs(x, name).to_complex64())
    plane_bytes = stored.layout.plane_bytes
    assert plane_bytes % cublaslt.PLANE_ALIGNMENT == 0
    assert plane_bytes >= 3 * 5 * 7 * 2
    assert (stored.layout.rows, stored.layout.columns, stored.layout.batch) == (7, 5, 3)


@pytest.mark.parametrize("transposed", [False, True])
def test_b_lies_as_it_is_or_transposed(rng: np.random.Generator, transposed: bool) -> None:
    x = rng.standard_normal((2, 5, 14), dtype=np.float32).view(np.complex64)
    found = joined(right_operand(x, "fp16", transposed))
    expected = to_pairs(x, "fp16").to_complex64()
    assert np.array_equal(found, expected.swapaxes(-1, -2) if transposed else expected)


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp32"])
def test_the_place_of_a_result_is_full_of_nan(name: str) -> None:
    place = Stored.empty(np.empty(0), (1, 3, 4), name)
    assert np.isnan(joined(place)).all()
