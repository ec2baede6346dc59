"""A study's ``precision: auto`` takes exact products, and its certificate states their bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from argand.device import cpu
from streamed_runs import LOG, Ran

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
