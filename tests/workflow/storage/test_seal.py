"""The seal at the end of a file, where the checksums of its chunks say nothing."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from workflow.storage.chunks import write_chunked
from workflow.storage.seal import SealError, check_seal, checksummed_ranges, seal


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
