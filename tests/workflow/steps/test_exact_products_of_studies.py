"""Exact products in a study: calls that prove them, delivery by `auto`, bounds of certificates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import WrongProductError, gemm
from argand.device import Device, cpu
from streamed_runs import LOG, Ran, workload_of

from tests.flipped_residue import flip_residue
from workflow.preflight.loading import load_study
from workflow.records import Record
from workflow.steps.delivery import deliver
from workflow.steps.result_choice import DeliveryError
from workflow.storage.certificates import read_certificate
from workflow.storage.products import read_product
from workflow.storage.staged import open_staged
from workflow.workloads.base import Workload

TIMES = {"fp64": 9.0, "7xint8": 1.0, "10xint8": 2.0, "15xint8": 3.0}
"""Times of a large card, in us: the more moduli, the slower, and all faster than fp64."""
_TIME_KEYS = ("time_us_p50", "time_us_low", "time_us_high")


def workload(tolerance: float) -> Workload:
    case = {"kind": "gemm", "m": 40, "n": 30, "k": 300, "precisions": tuple(TIMES),
            "precision": "auto", "tolerance": tolerance, "baselines": "none"}  # fmt: skip
    return load_study({"workloads": {"w": case}}).workload("w")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, list[Record]]:
    """A product at all precisions, with records as of a card."""
    found = Ran(tmp_path_factory.mktemp("exact") / "w", workload(1e-5), cpu())
    return found, [
        replace(
            record, backend="cuda", settled=True,
            **dict.fromkeys(_TIME_KEYS, TIMES[record.precision]),
        )
        for record in found.records()
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tolerance", "expected"), [(1e-5, "7xint8"), (1e-8, "10xint8"), (1e-14, "15xint8")]
)
def test_auto_takes_the_fewest_moduli_within_the_tolerance(
    ran: tuple[Ran, list[Record]], tmp_path: Path, tolerance: float, expected: str
) -> None:
    (one, records), path = ran, tmp_path / "product.h5"
    deliver(workload(tolerance), None, one.staged, one.run, records, records, path, LOG)
    found = read_certificate(path)
    assert (found["precision"], found["verdict"]) == (expected, "verified")
    assert found["requested_precision"] == "auto"
    assert found["rel_frobenius"] <= found["bound"]
    assert found["error_limit"] <= tolerance
    with open_staged(one.staged) as staged:
        a, b = (staged.operand(name).astype(complex) for name in ("a", "b"))
    product = read_product(path).data
    assert np.linalg.norm(product - a @ b) <= found["bound"] * np.linalg.norm(a @ b)


def test_what_no_number_of_moduli_holds_is_refused(
    ran: tuple[Ran, list[Record]], tmp_path: Path
) -> None:
    one, records = ran
    few = [record for record in records if record.precision in ("7xint8", "10xint8")]
    with pytest.raises(DeliveryError, match=r"Give a tolerance of .* or more, or measure a more"):
        deliver(workload(1e-12), None, one.staged, one.run, few, few, tmp_path / "p.h5", LOG)


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
