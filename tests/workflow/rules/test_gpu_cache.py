"""A study after the cache of compiled kernels was damaged."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from argand import Device
from slurm_project import Project

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not find_spec("snakemake"), reason="Snakemake is not installed"),
]

STUDY = """
device: cuda
precisions: [fp32, tf32, 3xfp16]
baselines: none
workloads:
  product: {kind: gemm, m: 300, n: 200, k: 100}
  spectrum: {kind: dft, length: 127, batch: 50}
  logits: {kind: softmax, rows: 64, columns: 1000}
  state: {kind: statevector, circuit: {name: qft, qubits: 10}, fuse: 4}
"""


def project_in(folder: Path, root: Path, cache: Path) -> Project:
    folder.mkdir()
    environ = {**os.environ, "ARGAND_CACHE": str(cache)}
    return Project(root, folder, environ, STUDY)


def damage(cubins: list[Path]) -> None:
    """In turn: a bit flipped, the end lost, nothing left, another's description."""
    for index, path in enumerate(cubins):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        damaged = (bytes(data), bytes(data[:-100]), b"", path.read_bytes())[index % 4]
        path.write_bytes(damaged)
        if index % 4 == 3:
            beside = path.with_suffix(".checked")
            beside.write_bytes(cubins[index - 1].with_suffix(".checked").read_bytes())


def test_kernels_are_compiled_again_and_the_tables_are_equal(
    root: Path, gpu: Device, tmp_path: Path
) -> None:
    whole, damaged = tmp_path / "whole", tmp_path / "damaged"
    undisturbed = project_in(tmp_path / "undisturbed", root, whole)
    undisturbed.finish(undisturbed.start("--cores", "4"))
    shutil.copytree(whole, damaged)
    cubins = sorted(damaged.glob("*.cubin"))
    damage(cubins)
    broken = [path for path in cubins if path.read_bytes() != (whole / path.name).read_bytes()]
    disturbed = project_in(tmp_path / "disturbed", root, damaged)
    disturbed.finish(disturbed.start("--cores", "4"))
    assert disturbed.rows() == undisturbed.rows()
    # Those that only measure what is then kept in a table are not loaded again.
    again = [path for path in broken if path.read_bytes() == (whole / path.name).read_bytes()]
    assert len(again) >= 4, "each kind has kernels of its own"
