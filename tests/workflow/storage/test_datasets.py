"""Staged and run files, and the seal at the end of a file: round trips, errors that name it."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.workflow.whole_files import read_result, read_staged
from workflow.data import Coordinate, Staged
from workflow.storage.chunks import write_chunked
from workflow.storage.datasets import DataError
from workflow.storage.runs import Result, open_run, write_run
from workflow.storage.seal import SealError, check_seal, checksummed_ranges, seal
from workflow.storage.staged import write_staged


@pytest.fixture
def staged(rng: np.random.Generator) -> Staged:
    return Staged(
        {"a": rng.standard_normal((3, 4)) + 1j, "widths": np.arange(5), "empty": np.zeros((0, 2))},
        {"a": ("m", "k"), "widths": ("gate",), "empty": ("x", "y")},
        {"m": Coordinate(np.arange(3.0), "m", "position")},
        {"seed": 7, "source": "generated"},
    )


def test_staged_round_trip(staged: Staged, tmp_path: Path) -> None:
    path = tmp_path / "w.h5"
    write_staged(path, staged, workload="w", kind="gemm")
    found = read_staged(path)
    for name, data in staged.operands.items():
        np.testing.assert_array_equal(found.operands[name], data)
        assert found.operands[name].dtype == data.dtype
    assert found.axes == staged.axes
    assert found.attributes == staged.attributes
    assert found.coordinates["m"].units == "m"
    np.testing.assert_array_equal(found.coordinates["m"].values, np.arange(3.0))
    assert [file.name for file in tmp_path.iterdir()] == ["w.h5"]


def test_missing_file_and_wrong_content_are_named(staged: Staged, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.h5"):
        read_staged(tmp_path / "nothing.h5")
    write_staged(tmp_path / "w.h5", staged, workload="w", kind="gemm")
    with pytest.raises(DataError, match=r"w\.h5: expected a run file of argand, found 'staged'"):
        read_result(tmp_path / "w.h5", "argand", "tf32")


def _result(**changes: object) -> Result:
    values: dict[str, object] = {
        "implementation": "argand", "precision": "tf32", "algorithm": "cgemm", "device": "cpu",
        "backend": "cpu", "data": np.arange(6.0).reshape(2, 3), "time_us_p50": 12.5, "load": 0.5,
    }  # fmt: skip
    return Result(**(values | changes))  # type: ignore[arg-type]


def test_run_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "w.h5"
    failed = _result(implementation="alpha", precision="fp32", data=None, reason="no memory")
    with write_run(path, "w", {"backend": "cpu"}) as writer:
        added = writer.add(_result())
        assert added == _result(data=None)
        amended = writer.amend(added, end_to_end_us=99.0, load=None, versions="")
        assert writer.add(failed) == failed
    with open_run(path) as run:
        first, second = run.results
        assert first == amended
        np.testing.assert_array_equal(run.read(first), _result().data)
        np.testing.assert_array_equal(
            run.read(first, [slice(2), slice(1, 3)]), _result().data[:, 1:3]
        )
        assert run.outline(first).shape == (2, 3)
        assert (first.time_us_p50, first.end_to_end_us) == (12.5, 99.0)
        assert (second, run.outline(second)) == (failed, None)
    with pytest.raises(DataError, match="has no data"), open_run(path) as run:
        run.read(failed)
    np.testing.assert_array_equal(read_result(path, "argand", "tf32").data, _result().data)
    with pytest.raises(DataError, match="incomplete"):
        read_result(path, "argand", "fp64")


def test_a_run_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="planted"), write_run(tmp_path / "w.h5", "w", {}):
        raise RuntimeError("planted")
    assert list(tmp_path.iterdir()) == []


def test_bytes_that_were_added_before_a_seal_are_refused(tmp_path: Path) -> None:
    """A seal says where it stands: else the bytes between it and the data would be nobody's."""
    path = tmp_path / "sealed.h5"
    with h5py.File(path, "w", libver="v110") as file:
        write_chunked(file, "x", np.arange(1000.0))
        ranges = checksummed_ranges(file)
    seal(path, ranges)
    check_seal(path)
    whole = path.read_bytes()
    at = whole.rindex(b'{"end": ')
    path.write_bytes(whole[:at] + bytes(8) + whole[at:])
    with pytest.raises(SealError, match="bytes are missing or were added"):
        check_seal(path)
