"""Results of exact integers are written by calls that prove them modulo a prime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import WrongProductError, gemm
from argand.device import Device, cpu
from streamed_runs import Ran, workload_of

from tests.flipped_residue import flip_residue

CASES: dict[str, dict[str, Any]] = {
    "gemm": {"kind": "gemm", "m": 9, "n": 7, "k": 40, "batch": 2, "op_a": "C", "beta": 2},
    "beamforming": {"kind": "beamforming", "channels": 2, "beams": 5, "antennas": 6, "samples": 9},
}
CHUNKS = {"kind": "gemm", "batch": 33, "m": 6, "n": 7, "k": 8, "device_memory": "20 KiB"}
PROOF = ", proved modulo 2147483647"
PROVED = ("7xint8", "16xint8")


def is_proved(folder: Path, case: dict[str, Any], device: Device) -> dict[str, bool]:
    """Return, by its precision, whether the algorithm of each of our results says a proof."""
    ran = Ran(folder / "w", workload_of(case, "fp32", *PROVED), device)
    records = ran.records()
    assert all(one.verified for one in records)
    return {one.precision: one.algorithm.endswith(PROOF) for one in records if one.is_ours}


@pytest.mark.parametrize("kind", CASES)
def test_exact_integers_are_proved_and_say_so(tmp_path: Path, kind: str) -> None:
    found = is_proved(tmp_path, CASES[kind], cpu())
    assert found == {"fp32": False, **dict.fromkeys(PROVED, True)}


@pytest.mark.gpu
@pytest.mark.parametrize("kind", CASES)
def test_a_gpus_are_proved(tmp_path: Path, kind: str, gpu: Device) -> None:
    found = is_proved(tmp_path, CASES[kind], gpu)
    assert found == {"fp32": False, **dict.fromkeys(PROVED, True)}


def test_what_is_written_is_what_was_proved(tmp_path: Path) -> None:
    ran = Ran(tmp_path / "w", workload_of(CASES["beamforming"], "7xint8"), cpu())
    staged = ran.workload.stage().operands
    weights, samples = (staged[name].astype(np.complex64) for name in ("weights", "samples"))
    expected = gemm(weights, samples, precision="7xint8")
    np.testing.assert_array_equal(ran.result(precision="7xint8").data, expected)


def test_a_wrong_bit_of_one_residue_ends_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip_residue(monkeypatch, 4, 2)
    with pytest.raises(WrongProductError, match=r"of 9 rows of an exact product are wrong"):
        Ran(tmp_path / "w", workload_of(CASES["gemm"], "fp32", "7xint8"), cpu())


def test_chunks_are_proved(tmp_path: Path) -> None:
    assert is_proved(tmp_path, CHUNKS, cpu()) == {"fp32": False, **dict.fromkeys(PROVED, True)}


@pytest.mark.gpu
def test_a_gpus_chunks_are_proved(tmp_path: Path, gpu: Device) -> None:
    larger = {**CHUNKS, "m": 60, "n": 70, "k": 80, "device_memory": "4 MiB"}  # room for launches
    assert is_proved(tmp_path, larger, gpu) == {"fp32": False, **dict.fromkeys(PROVED, True)}


def test_a_wrong_bit_in_a_chunk_ends_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip_residue(monkeypatch, 4, 2)
    with pytest.raises(WrongProductError, match=r"of 6 rows of an exact product are wrong"):
        Ran(tmp_path / "w", workload_of(CHUNKS, "fp32", "7xint8"), cpu())
