"""Data larger than memory are verified and delivered in pieces: same verdicts and products."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand.device import cpu
from streamed_runs import CASES, LOG, NAMES, Ran, run_python, without_bound, workload_of

from workflow.shards import Shard
from workflow.steps import pieces
from workflow.steps.delivery import deliver
from workflow.steps.pieces import pieces_of, sizes
from workflow.storage.certificates import read_certificate
from workflow.storage.products import read_product

SMALL = 60_000
"""Bytes of a piece, so that the cases have several."""


def delivered(ran: Ran, path: Path) -> Any:
    records = ran.records()
    deliver(ran.workload, ran.shard, ran.staged, ran.run, records, records, path, LOG)
    return records, read_product(path)


@pytest.mark.parametrize("name", NAMES)
def test_are_verified_and_delivered_as_the_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    case, axis = CASES[name]
    alone = {"baselines": "none"} if name != "channels" else {}
    ran = Ran(tmp_path / "w", workload_of(without_bound(case) | alone, "fp32"), cpu())
    whole, product = delivered(ran, tmp_path / "whole.h5")
    assert "pieces along" not in caplog.text
    monkeypatch.setattr(pieces, "MAX_BYTES", SMALL)
    records, in_pieces = delivered(ran, tmp_path / "pieces.h5")
    assert f"pieces along axis {axis}" in caplog.text
    np.testing.assert_array_equal(in_pieces.data, product.data)
    assert in_pieces.data.dtype == product.data.dtype
    assert (in_pieces.axes, in_pieces.title) == (product.axes, product.title)
    for axis, coordinate in product.coordinates.items():
        np.testing.assert_array_equal(in_pieces.coordinates[axis].values, coordinate.values)
    for found, expected in zip(records, whole, strict=True):
        assert found.verified
        assert found.reference_rows >= expected.reference_rows
        # The reference's own rounding depends on its shape: some u of fp64.
        assert found.rel_frobenius >= expected.rel_frobenius - 1e-15
        # A piece has fewer elements to average over.
        assert expected.bound <= found.bound * 1.1
        for key in ("componentwise_re", "componentwise_im", "max_ulp", "tflops", "m"):
            one, other = found.row()[key], expected.row()[key]
            assert (one is None and other is None) or one == pytest.approx(other, rel=1e-6), key
    certificates = [read_certificate(tmp_path / f"{one}.h5") for one in ("whole", "pieces")]
    assert certificates[0].keys() == certificates[1].keys()


def test_pieces_of_a_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, _ = CASES["channels"]
    ran = Ran(tmp_path / "w", workload_of(without_bound(case), "fp32"), cpu(), Shard(1, 3))
    _, product = delivered(ran, tmp_path / "whole.h5")
    monkeypatch.setattr(pieces, "MAX_BYTES", SMALL)
    records, in_pieces = delivered(ran, tmp_path / "pieces.h5")
    np.testing.assert_array_equal(in_pieces.data, product.data)
    assert all(record.verified for record in records)


def test_a_wrong_element_is_found_and_its_piece_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, _ = CASES["channels"]
    ran = Ran(tmp_path / "w", workload_of(without_bound(case), "fp32"), cpu())
    original = pieces.Piece.within
    monkeypatch.setattr(pieces, "MAX_BYTES", SMALL)

    def off_by_one(self: pieces.Piece, axes: Any, shape: Any) -> list[slice]:
        if self.start == 0:
            return original(self, axes, shape)
        return original(pieces.Piece(self.axis, self.start - 1, self.stop - 1), axes, shape)

    monkeypatch.setattr(pieces.Piece, "within", off_by_one)
    for record in ran.records():
        assert not record.verified
        assert record.reason.startswith("frequency ")
        assert "frequency 0 to" not in record.reason


@pytest.mark.parametrize("name", NAMES)
def test_cover_the_axis_and_keep_to_their_size(name: str) -> None:
    workload = workload_of(CASES[name][0], "fp32")
    outline = workload.outline()
    for most in (1, 10_000, SMALL, 10**9):
        found = pieces_of(workload, outline, most)
        covered = [entry for piece in found for entry in range(piece.start, piece.stop)]
        assert covered == list(range(found.length))
        assert len(list(found)) == len(found)
        shared = sum(sizes(workload, outline).operands[one] for one in found.shared)
        assert found.bytes == found.own + shared
        assert found.own <= max(most, shared) or found.entries == 1
        assert (found.axis is None) == (sizes(workload, outline).volume <= most)


def test_beams_that_peers_form_before_detection_count() -> None:
    case = {"kind": "beamforming", "channels": 2, "beams": 5, "antennas": 4, "samples": 96}
    beams, powers = (
        sizes(workload, workload.outline())
        for workload in map(workload_of, (case, case | {"detect": "power", "integrate": 8}))
    )
    assert powers.formed == beams.result == 16 * 2 * 5 * 96
    assert powers.result < powers.formed
    assert powers.volume >= sum(powers.operands.values()) + powers.formed
    product = workload_of({"kind": "gemm", "m": 3, "n": 5, "k": 7})
    one = sizes(product, product.outline())
    assert one.formed == one.result == 16 * 3 * 5
    seen = workload_of({"kind": "image", "antennas": 9, "channels": 2, "directions": {
        "n": 5, "field_of_view_deg": 40,
    }})  # fmt: skip
    assert sizes(seen, seen.outline()).formed == 16 * 9 * 25  # weights of one channel


def test_a_state_is_one_piece() -> None:
    case = {"kind": "statevector", "circuit": {"name": "ghz", "qubits": 6}}
    found = pieces_of(workload_of(case, "fp32"), workload_of(case, "fp32").stage(), 1)
    assert [str(piece) for piece in found] == [""]


PEAKS = """
import json, logging, resource, sys
from pathlib import Path
from argand.runtime.measuring.ceilings import Ceilings
from workflow.preflight.loading import load_study
from workflow.steps import pieces
from workflow.steps.delivery import deliver
from workflow.steps.verification import verify
from workflow.storage.memory import peak_bytes
pieces.MAX_BYTES = 8 << 20
log, ceilings, peaks = logging.getLogger(), Ceilings("another", 10.0, {}), []
for rows in sys.argv[1:]:
    case = {"kind": "softmax", "rows": int(rows), "columns": 1000}
    study = {"precisions": ["fp32"], "baselines": "none", "workloads": {"w": case}}
    workload = load_study(study).workload("w")
    staged, run, product = (Path(rows, name) for name in ("staged.h5", "run.h5", "product.h5"))
    for threads in (4, 1):
        records = verify(workload, staged, run, ceilings, log, threads=threads)
    by_each_of_four = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    deliver(workload, None, staged, run, records, records, product, log)
    peaks.append(max(peak_bytes(), by_each_of_four) / 2**20)
print(json.dumps(peaks))
"""


def test_host_memory_does_not_grow_with_the_data(tmp_path: Path, root: Path) -> None:
    rows = (500, 8000)  # 2 and 32 MB, and as much of results
    for number in rows:
        case = {"kind": "softmax", "rows": number, "columns": 1000, "device_memory": "6 MiB"}
        Ran(tmp_path / str(number), workload_of(case | {"baselines": "none"}, "fp32"), cpu())
    small, large = json.loads(run_python(PEAKS, tmp_path, root, *map(str, rows)).stdout)
    assert large - small < 30
