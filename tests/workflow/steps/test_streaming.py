"""Data larger than a device's memory: the same results in chunks, in bounded host memory."""

from __future__ import annotations

import contextlib
import math
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Device, DeviceError
from argand.device import cpu
from argand.runtime.launch import kernel_trace
from streamed_runs import (
    CASES,
    NAMES,
    Ran,
    full_device,
    run_python,
    sized,
    without_bound,
    workload_of,
)

from tests.covers import EXHAUSTIVE
from workflow.config.mistakes import StudyError
from workflow.data import Staged
from workflow.shards import Shard
from workflow.steps import streaming
from workflow.storage.staged import write_staged
from workflow.workloads import matrix_product


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_whole_and_verify(
    name: str, device: Device, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    case, axis = sized(name, device), CASES[name][1]
    caplog.set_level("INFO")
    precisions = () if EXHAUSTIVE or name in ("channels", "rows") else ("fp32",)
    started = time.perf_counter()
    streamed = Ran(tmp_path / "streamed", workload_of(case, *precisions), device)
    assert f" {axis} in " in caplog.text
    whole = Ran(tmp_path / "whole", workload_of(without_bound(case), *precisions), device)
    elapsed_us = 1e6 * (time.perf_counter() - started)
    records, others = streamed.records(), whole.records()
    assert [(r.implementation, r.precision) for r in records] == [
        (r.implementation, r.precision) for r in others
    ]
    for record, other in zip(records, others, strict=True):
        who = record.implementation, record.precision
        assert record.verified, record.reason
        assert record.chunks >= 4
        assert other.chunks is None
        assert record.time_us_p50 > 0
        for one in (record, other):
            assert 0 < one.end_to_end_us < elapsed_us  # a part of the run, however slow that was
        found, expected = streamed.result(*who), whole.result(*who)
        assert found.data.dtype == expected.data.dtype
        # A shorter product may be summed in another order, and a library round its operands.
        allowed = max(4e-6, 4 * PRECISIONS[record.precision].u) * abs(expected.data).max()
        np.testing.assert_allclose(found.data, expected.data, rtol=0, atol=allowed)


def test_a_shard_is_streamed(device: Device, tmp_path: Path) -> None:
    """Split along one axis and streamed along another."""
    case = CASES["times"][0] | {"channels": 3, "device_memory": "50 KiB"}
    whole = Ran(tmp_path / "whole", workload_of(without_bound(case), "fp32"), device)
    for index in range(3) if EXHAUSTIVE else (0, 2):
        ran = Ran(tmp_path / str(index), workload_of(case, "fp32"), device, Shard(index, 3))
        assert all(record.verified and record.chunks > 1 for record in ran.records())
        expected = whole.result().data[index : index + 1]
        np.testing.assert_allclose(ran.result().data, expected, rtol=0, atol=1e-4)


def test_not_even_one_entry_fits(device: Device, tmp_path: Path) -> None:
    case = {"kind": "softmax", "rows": 4, "columns": 1000, "device_memory": "1 KiB"}
    ran = Ran(tmp_path / "w", workload_of(case, "fp32"), device)
    found = ran.result()
    assert found.data is None
    assert "does not fit into 1 KiB of device memory: needs 23.4 KiB for one of axis row" in (
        found.reason
    )
    assert not any(record.verified for record in ran.records())


class Pool:
    """CuPy's: it holds blocks, of which arrays in use take parts; its limit is that of blocks."""

    def __init__(self, *blocks: tuple[int, int]) -> None:
        self.blocks, self.limits = list(blocks), list[int]()

    def free_all_blocks(self) -> None:
        self.blocks = [(size, used) for size, used in self.blocks if used]

    def total_bytes(self) -> int:
        return sum(size for size, _ in self.blocks)

    def used_bytes(self) -> int:
        return sum(used for _, used in self.blocks)

    def free_bytes(self) -> int:
        return self.total_bytes() - self.used_bytes()

    def set_limit(self, size: int) -> None:
        self.limits.append(size)


def test_blocks_that_the_process_holds_already_are_not_the_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A small array is left in a large block: the pool holds all of it, and gives none back."""
    pool, there = Pool((64 << 20, 512), (32 << 20, 0)), 1 << 40
    cuda = SimpleNamespace(
        Device=lambda index: contextlib.nullcontext(),
        runtime=SimpleNamespace(memGetInfo=lambda: (there, there)),
    )
    cupy = SimpleNamespace(cuda=cuda, get_default_memory_pool=lambda: pool)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    workload = workload_of(CASES["logits"][0], "fp32")
    with streaming.limited_device_memory(workload, replace(cpu(), backend="cuda")):
        assert pool.limits == [pool.total_bytes() + (30 << 10)] == [(64 << 20) + (30 << 10)]
    assert pool.limits[1:] == [0]


@pytest.mark.gpu
def test_a_job_streams_beside_what_the_process_holds(gpu: Device, cp: Any, tmp_path: Path) -> None:
    cp.get_default_memory_pool().free_all_blocks()
    large = cp.empty(64 << 20, cp.uint8)
    del large
    small = cp.ones(8, cp.uint8)  # in a part of that block
    workload = workload_of(sized("rows", gpu), "3xfp16")
    assert all(record.verified for record in Ran(tmp_path / "w", workload, gpu).records())
    assert int(small.sum()) == 8


def test_a_state_cannot_be_streamed_and_is_computed_whole(tmp_path: Path) -> None:
    case = {
        "kind": "statevector",
        "circuit": {"name": "ghz", "qubits": 6},
        "device_memory": "1 KiB",
    }
    assert Ran(tmp_path / "w", workload_of(case, "fp32"), cpu()).records()[0].verified


@pytest.mark.parametrize(
    "text", [300_000, "4", "4 GB", "4GiB", "0 MiB", "-1 MiB", "4 gib", "1e3 MiB"]
)
def test_other_sizes_are_refused(text: object) -> None:
    with pytest.raises(StudyError, match=r"w\.device_memory: must be text such as '4 GiB', got"):
        workload_of(CASES["logits"][0] | {"device_memory": text})


def test_sizes_are_binary() -> None:
    sizes = [
        workload_of(CASES["logits"][0] | {"device_memory": text}).case.device_memory_bytes()
        for text in ("1 KiB", "1.5 MiB", "4 GiB")
    ]
    assert sizes == [1 << 10, 3 << 19, 4 << 30]


def test_what_turns_out_not_to_fit_whole_is_streamed(
    device: Device,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The estimate let it on the device, which had less room than it said."""
    case = {"kind": "softmax", "rows": 4099, "columns": 40, "baselines": "none"}
    workload = workload_of(case, "fp32")
    full_device(monkeypatch, workload, 4000)
    (record,) = Ran(tmp_path / "w", workload, device).records()
    assert record.verified
    assert record.chunks > 1
    assert "out of memory with all of it on the device: in chunks (out of" in caplog.text


def test_the_record_names_the_kernels_of_every_chunk(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in launches one for the rows that it has; the peer's library leaves no name."""
    original = matrix_product.gemm

    def named(a: Any, b: Any, **how: Any) -> Any:
        kernel_trace.note(f"kernel of {a.shape[-1]} rows")
        return original(a, b, **how)

    monkeypatch.setattr(matrix_product, "gemm", named)
    case = sized("rows", device)
    for name, given in (("streamed", case), ("whole", without_bound(case))):
        ran = Ran(tmp_path / name, workload_of(given, "fp32"), device)
        ours, *peers = ran.records()
        steps = sorted(int(rows) for rows in re.findall(r"kernel of (\d+) rows", ours.algorithm))
        if name == "whole":
            assert steps == [given["m"]]
        else:
            assert len(steps) == 2
            assert given["m"] % steps[1] == steps[0]
        assert peers
        assert not any("kernel" in peer.algorithm for peer in peers)


@pytest.mark.gpu
@pytest.mark.parametrize("kernels", [{}, {"3xfp16": "mma.sync"}], ids=str)
def test_the_record_names_the_family_that_ran(
    gpu: Device, tmp_path: Path, kernels: dict[str, str]
) -> None:
    case = sized("rows", gpu) | {"kernels": kernels}
    for name, given in (("streamed", case), ("whole", without_bound(case))):
        (record, *_) = Ran(tmp_path / name, workload_of(given, "3xfp16"), gpu).records()
        family = r"mma[.]sync \d+x\d+x\d+ " if kernels else r"(wgmma|mma[.]sync|fma) \d+x\d+"
        assert re.match(rf"fp16 4M \(3 products\), {family}", record.algorithm)


PEAKS = """
import logging, sys
from pathlib import Path
from argand.device import cpu
from workflow.steps.execute import execute
from workflow.preflight.loading import load_study
for rows in sys.argv[1:]:
    case = {"kind": "softmax", "rows": int(rows), "columns": 1000, "device_memory": "6 MiB"}
    study = {"precisions": ["fp32"], "baselines": "none", "workloads": {"w": case}}
    workload = load_study(study).workload("w")
    execute(workload, Path(f"{rows}.h5"), Path(f"{rows}-run.h5"), cpu(), logging.getLogger())
    status = Path("/proc/self/status").read_text()
    print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
"""


def test_host_memory_does_not_grow_with_the_data(tmp_path: Path, root: Path) -> None:
    rows = (5_000, 17_000)  # 20 and 68 MB
    for number in rows:
        staged = Staged({"x": np.zeros((number, 1000), np.float32)}, {"x": ("row", "column")})
        write_staged(tmp_path / f"{number}.h5", staged, workload="w", kind="softmax")
    done = run_python(PEAKS, tmp_path, root, *map(str, rows))
    small, large = (int(line) / 1024 for line in done.stdout.split())
    assert large - small < 20


def test_an_axis_whose_entries_fit_is_found() -> None:
    case = CASES["times"][0] | {"channels": 2}
    workload = workload_of(case, "fp32")
    outline = workload.stage()
    fp32 = PRECISIONS["fp32"]
    moved = workload.shape(outline, fp32).bytes_moved
    assert streaming.plan_chunks(workload, outline, fp32, int(2 * moved)).axis == "frequency"
    assert streaming.plan_chunks(workload, outline, fp32, int(moved)).axis == "time"


def test_operands_that_all_chunks_share_leave_them_less_room() -> None:
    """The matrix of 12 x 12 beside the one entry that fits, and beside none."""
    case = CASES["sides"][0]
    workload = workload_of(case, "fp32")
    outline = workload.stage()
    one = workload.argand(outline, PRECISIONS["fp32"], cpu())
    moved = workload.shape(outline, one.precision).bytes_moved
    shared = outline.operands["a"].size * 8
    entry = math.ceil(streaming.SHARE * (moved - shared) / outline.axis_lengths()["rhs"])
    assert streaming.plan_chunks(workload, outline, one.precision, shared + entry).entries == 1
    with pytest.raises(DeviceError, match="needs"):
        streaming.plan_chunks(workload, outline, one.precision, entry)
    with pytest.raises(DeviceError, match="needs"):
        streaming.plan_chunks(workload, outline, one.precision, shared + entry, constants=entry)
