"""Estimated times of images on a CPU, whose weights take longer than their products."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
from argand import get_precision

from benchmarks.peers import bytes_of_image
from workflow.implementation import OtherWork
from workflow.preflight.estimates import call_seconds, estimate, other_seconds
from workflow.preflight.loading import load_study

_STEPS_OF_A_CALL = 1e-4
"""Seconds of thirty NumPy steps that take no numbers: an estimate has none for them."""


def test_images_on_a_cpu_took_no_longer_than_estimated(root: Path) -> None:
    """Products are the least part of the recorded calls: weights and R w have to count."""
    recorded = (root / "docs" / "data" / "cpu-calls-two-cores.csv").read_text().splitlines()
    rows = [row for row in csv.DictReader(recorded) if row["operation"] == "image"]
    shorter = 0
    for row in rows:
        sizes, directions = row["shape"].split(" to ")
        *images, channels, antennas, _ = map(int, sizes.split("x"))
        weights = channels * antennas * int(directions)
        count, precision = math.prod(images), get_precision(np.dtype(row["dtype"]))
        made = OtherWork(weights, weights * count, bytes_of_image(weights, count))
        moved = 8 * count * (2 * channels * antennas**2 + int(directions))
        products = call_seconds(8 * count * antennas * weights, moved, precision, gpu=False)
        ours, numpy = (products + other_seconds(made, peer=peer) for peer in (False, True))
        assert 1e-6 * float(row["time_us"]) < ours + _STEPS_OF_A_CALL, row
        assert 1e-6 * float(row["numpy_us"]) < numpy + _STEPS_OF_A_CALL, row
        shorter += products < 1e-6 * float(row["numpy_us"])
    assert shorter > len(rows) / 2 > 5, "by products alone"


def test_a_run_counts_the_weights_of_images() -> None:
    grid = {"n": 50, "field_of_view_deg": 60}
    case = {"kind": "image", "antennas": 20, "channels": 3, "directions": grid}

    def seconds(**more: object) -> float:
        study = load_study({"device": "cpu", "workloads": {"x": {**case, **more}}})
        return estimate(study, "x", "run")[1]

    workload = load_study({"device": "cpu", "workloads": {"x": case}}).workload("x")
    made = workload.other_work(workload.outline())
    assert made.exponentials == 3 * 20 * 50**2
    assert made.peer_bytes == bytes_of_image(made.exponentials, 1)
    alone = {"precisions": ["tf32"], "baselines": "none"}
    more = seconds(**alone, directions={**grid, "n": 500}) - seconds(**alone)
    assert more > 6 * other_seconds(OtherWork(3 * 20 * (500**2 - 50**2)), peer=False)
