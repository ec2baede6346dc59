"""Each worker collects every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.collected_parts import is_left_out, parts, rotated


def test_every_file_is_in_one_part(root: Path) -> None:
    found = parts(root / "tests")
    files = [path for path in (root / "tests").rglob("test_*.py") if not is_left_out(path)]
    assert len(files) > 200
    for file in files:
        assert sum(part == file or part in file.parents for part in found) == 1, file


@pytest.mark.parametrize("workers", [1, 3, 60])
def test_workers_begin_with_others_and_collect_the_same(root: Path, workers: int) -> None:
    every = [rotated(root / "tests", worker, workers) for worker in range(workers)]
    assert len({one[0] for one in every}) == min(workers, len(every[0]))
    assert {tuple(sorted(one)) for one in every} == {tuple(sorted(parts(root / "tests")))}
