"""cuBLASLt as a peer, without it: an error that says so, and the planes."""

from __future__ import annotations

import numpy as np
import pytest
from argand import to_pairs

from benchmarks.peers import CannotRunError
from benchmarks.peers import _cublaslt as cublaslt
from benchmarks.peers.cublaslt_planar import Stored, candidates, joined, right_operand


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
