"""Shards: what a study says of them, and the same answer with and without."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand.device import cpu
from argand.runtime.measuring.ceilings import Ceilings

from tests.workflow.streamed_runs import CASES as STREAMED
from tests.workflow.streamed_runs import without_bound
from tests.workflow.whole_files import read_staged
from workflow.config.mistakes import StudyError
from workflow.data import Product
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study
from workflow.records import Record
from workflow.shards import Shard, shards, split_part
from workflow.steps.combining import CombinationError, combine
from workflow.steps.delivery import deliver
from workflow.steps.execute import execute
from workflow.steps.gathering import gather
from workflow.steps.result_choice import DeliveryError
from workflow.steps.staging import stage
from workflow.steps.verification import verify
from workflow.storage.certificates import read_certificate
from workflow.storage.datasets import DataError
from workflow.storage.products import read_product
from workflow.workloads.base import Workload

LOG = logging.getLogger("test")
CASES: dict[str, tuple[dict[str, Any], str]] = {
    **{name: (without_bound(case), axis) for name, (case, axis) in STREAMED.items()},
    "powers": (
        {"kind": "beamforming", "channels": 5, "beams": 5, "antennas": 6, "samples": 40,
         "detect": "power", "integrate": 8},
        "frequency",
    ),
    "visibilities": (
        {"kind": "correlate", "channels": 7, "antennas": 6, "samples": 24, "integrate": 8},
        "frequency",
    ),
    "systems": ({"kind": "solve", "n": 8, "rhs": 2, "batch": 5}, "batch"),
    "cylinder": ({"kind": "solve", "source": "cylinder", "ka": 3, "n": 26, "rhs": 9}, "rhs"),
}  # fmt: skip


def study_of(case: dict[str, Any], **changes: Any) -> Any:
    precisions = ["fp32", "3xtf32"] if case is CASES["channels"][0] else ["fp32"]
    workload = {**case, "precision": "fp32", **changes}
    settings = {"device": "cpu", "precisions": precisions, "baselines": "none"}
    return load_study({**settings, "workloads": {"w": workload}})


@pytest.mark.parametrize("name", CASES)
def test_as_many_shards_as_entries_and_no_more(name: str) -> None:
    case = CASES[name][0]
    workload = study_of(case).workload("w")
    lengths = workload.outline().axis_lengths()
    splits = workload.split_axes(workload.outline().axes)
    longest = max(lengths[axis] for axis in splits if axis in lengths)
    check_study(study_of(case, shards=longest))
    with pytest.raises(StudyError, match=rf"workloads\.w\.shards: must be at most {longest}, "):
        check_study(study_of(case, shards=longest + 1))


def test_a_state_is_not_split() -> None:
    case = {"kind": "statevector", "circuit": {"name": "ghz", "qubits": 3}, "shards": 2}
    with pytest.raises(StudyError, match=r"w\.shards: must be 1, because this kind has no axis"):
        check_study(study_of(case))


def test_the_operands_do_not_depend_on_the_shards() -> None:
    case = CASES["channels"][0]
    assert study_of(case).staged_json("w") == study_of(case, shards=3).staged_json("w")
    assert study_of(case).parts("w") == ("w",)
    assert study_of(case, shards=2).parts("w") == ("w/1-of-2", "w/2-of-2")


@pytest.mark.parametrize("count", [1, 2, 7])
def test_parts_and_no_others_fit_their_pattern(count: int) -> None:
    study = study_of(CASES["channels"][0], shards=count)
    pattern = re.compile(study.part_pattern("w"))
    assert all(pattern.fullmatch(part) for part in study.parts("w"))
    others = ("w/1-of-99", "w/x", "v", "w/", "" if count == 1 else "w")
    assert not any(pattern.fullmatch(other) for other in others)


class Pipeline:
    """The steps of one workload, in a folder laid out as results are."""

    def __init__(self, folder: Path, workload: Workload, files: Sequence[Path] = ()) -> None:
        self.folder, self.workload = folder, workload
        self.staged = folder / "staged" / "w.h5"
        self.product = folder / "products" / "w.h5"
        self.staged.parent.mkdir(parents=True)
        stage(workload, list(files), self.staged, LOG)

    def measure(self, part: str) -> list[Record]:
        """Run and verify."""
        shard = split_part(part)[1]
        (self.folder / part).mkdir(parents=True)
        run = self.folder / part / "run.h5"
        execute(self.workload, self.staged, run, cpu(), LOG, shard)
        ceilings = Ceilings(
            cpu().name, 10.0, {"fp64": 0.1} | dict.fromkeys(("fp32", "tf32", "fp16", "bf16"), 0.2)
        )
        return verify(self.workload, self.staged, run, ceilings, LOG, shard)

    def deliver(self, part: str, records: list[Record], own: list[Record]) -> Path:
        path = self.folder / "products" / f"{part}.h5"
        path.parent.mkdir(parents=True, exist_ok=True)
        run, shard = self.folder / part / "run.h5", split_part(part)[1]
        deliver(self.workload, shard, self.staged, run, records, own, path, LOG)
        return path

    def whole(self) -> Product:
        records = self.measure("w")
        return read_product(self.deliver("w", records, records))

    def sharded(self, count: int) -> tuple[Product, list[Record]]:
        found = {shard: self.measure(f"w/{shard}") for shard in shards(count)}
        records = combine(self.workload, self.staged, found, LOG)
        files = {one: self.deliver(f"w/{one}", records, own) for one, own in found.items()}
        gather(self.workload, self.staged, files, records, self.product, LOG)
        return read_product(self.product), records


@pytest.mark.parametrize("name", CASES)
def test_the_product_is_that_of_the_whole(name: str, tmp_path: Path) -> None:
    case, axis = CASES[name]
    whole = Pipeline(tmp_path / "whole", study_of(case).workload("w")).whole()
    pipeline = Pipeline(tmp_path / "split", study_of(case, shards=3).workload("w"))
    split, records = pipeline.sharded(3)
    assert split.axes == whole.axes
    assert split.data.dtype == whole.data.dtype
    # The operands are the same to the bit; libraries may sum shorter matrices in another order.
    np.testing.assert_allclose(split.data, whole.data, rtol=2e-6, atol=2e-6 * abs(whole.data).max())
    assert split.coordinates.keys() == whole.coordinates.keys()
    for key, one in whole.coordinates.items():
        found = split.coordinates[key].values
        if not key.startswith("evm_"):
            np.testing.assert_array_equal(found, one.values)
        else:  # in dB: an error is so many times smaller than symbols, which differ by 2e-6
            assert (np.abs(found - one.values) <= 1.8e-5 * 10 ** (-one.values / 20)).all()
    assert read_certificate(pipeline.product)["shards"]["axis"] == axis
    assert all(record.verified and record.shards == 3 for record in records)


@pytest.mark.parametrize("name", CASES)
def test_shards_read_the_operands_of_the_whole_to_the_bit(name: str, tmp_path: Path) -> None:
    case, axis = CASES[name]
    pipeline = Pipeline(tmp_path, study_of(case, shards=3).workload("w"))
    whole = read_staged(pipeline.staged)
    splits = pipeline.workload.split_axes
    parts = [read_staged(pipeline.staged, splits, shard) for shard in shards(3)]
    for operand, data in whole.operands.items():
        if axis in whole.axes[operand]:
            at = whole.axes[operand].index(axis)
            joined = np.concatenate([part.operands[operand] for part in parts], at)
            np.testing.assert_array_equal(joined, data)
        else:
            assert all(np.array_equal(part.operands[operand], data) for part in parts)
    if axis in whole.coordinates:
        joined = np.concatenate([part.coordinates[axis].values for part in parts])
        np.testing.assert_array_equal(joined, whole.coordinates[axis].values)


def test_shards_at_another_precision_than_the_whole_are_not_gathered(tmp_path: Path) -> None:
    case = CASES["channels"][0]
    pipeline = Pipeline(tmp_path, study_of(case, shards=2).workload("w"))
    _, records = pipeline.sharded(2)
    other = study_of(case, shards=2, precision="3xtf32").workload("w")
    files = {one: tmp_path / "products" / "w" / f"{one}.h5" for one in shards(2)}
    assert [read_certificate(file)["shard"] for file in files.values()] == ["1-of-2", "2-of-2"]
    with pytest.raises(DeliveryError, match=r"1-of-2\.h5 must be at 3xtf32, .*, got fp32"):
        gather(other, pipeline.staged, files, records, pipeline.product, LOG)


def test_more_shards_than_were_staged(tmp_path: Path) -> None:
    """The user's file may have become shorter since the study was checked."""
    pipeline = Pipeline(tmp_path, study_of(CASES["logits"][0]).workload("w"))
    with pytest.raises(
        DataError, match=r"w\.h5: shards must be at most 517, .*was its input changed"
    ):
        read_staged(pipeline.staged, pipeline.workload.split_axes, Shard(0, 518))


def row(shard: str, **changes: Any) -> Record:
    values: dict[str, Any] = {
        "workload": "w", "kind": "softmax", "implementation": "argand", "precision": "fp32",
        "algorithm": "x", "device": "d", "shard": shard, "time_us_p50": 10.0, "time_us_p20": 9.0,
        "end_to_end_us": 30.0, "iterations": 5, "rel_frobenius": 1e-7, "bound": 1e-6,
        "limit_fraction": 0.5, "verified": True, "verdict": "verified", "reference": "full",
        "reference_rows": 3, "error_limit": 1e-7,
    }  # fmt: skip
    return Record(**values | changes)


@pytest.fixture
def softmax(tmp_path: Path) -> Pipeline:
    return Pipeline(tmp_path, study_of(CASES["logits"][0], shards=2).workload("w"))


def test_times_are_sums_and_errors_the_worst(softmax: Pipeline) -> None:
    found = {
        Shard(0, 2): [row("1-of-2", clock_mhz=1980.0, load=0.1)],
        Shard(1, 2): [
            row("2-of-2", time_us_p50=30.0, limit_fraction=0.1, rel_frobenius=3e-7, iterations=7,
                clock_mhz=1500.0, load=1.2)
        ],
    }  # fmt: skip
    (whole,) = combine(softmax.workload, softmax.staged, found, LOG)
    assert (whole.shards, whole.shard, whole.rows, whole.columns) == (2, "", 517, 33)
    assert (whole.time_us_p50, whole.end_to_end_us, whole.iterations) == (40.0, 60.0, 5)
    assert (whole.clock_mhz, whole.load) == (1500.0, 1.2)
    assert whole.time_us_p20 is None
    assert whole.tflops == pytest.approx(5 * 517 * 33 / 40e-6 / 1e12)
    assert whole.limit_fraction == pytest.approx((0.5 * 10 + 0.1 * 30) / 40)
    assert (whole.rel_frobenius, whole.bound, whole.reference_rows) == (3e-7, 1e-6, 6)


def test_one_shard_that_fails_fails_the_whole(softmax: Pipeline) -> None:
    said = "rel_frobenius 1 exceeds 0.1"
    bad = row("2-of-2", verdict="wrong", verified=False, reason=said, rel_frobenius=1.0)
    found = {Shard(0, 2): [row("1-of-2")], Shard(1, 2): [bad]}
    (whole,) = combine(softmax.workload, softmax.staged, found, LOG)
    assert not whole.verified
    assert whole.reason == "shard 2-of-2: rel_frobenius 1 exceeds 0.1"
    with pytest.raises(DeliveryError, match="shard 2-of-2"):
        softmax.deliver("w/1-of-2", [whole], [row("1-of-2")])


def test_a_shard_that_was_not_computed_leaves_no_time(softmax: Pipeline) -> None:
    absent = row(
        "2-of-2", verdict="", verified=False, reason="MemoryError: x", time_us_p50=None, bound=None
    )  # fmt: skip
    found = {Shard(0, 2): [row("1-of-2")], Shard(1, 2): [absent]}
    (whole,) = combine(softmax.workload, softmax.staged, found, LOG)
    assert (whole.time_us_p50, whole.tflops, whole.bound) == (None, None, None)


@pytest.mark.parametrize("precisions", [("fp64",), ("fp32", "fp64"), ()])
def test_shards_that_measured_different_things(
    softmax: Pipeline, precisions: tuple[str, ...]
) -> None:
    """Others, more or fewer than the first."""
    second = [row("2-of-2", precision=name) for name in precisions]
    with pytest.raises(CombinationError, match=r"2-of-2 has records of .*, the first"):
        combine(
            softmax.workload, softmax.staged,
            {Shard(0, 2): [row("1-of-2")], Shard(1, 2): second}, LOG,
        )  # fmt: skip
