"""Results of workloads and shards that are not in a study any more are named."""

from __future__ import annotations

from pathlib import Path

from workflow.outcome.leftovers import left_over
from workflow.storage.checked_json import write_object


def put(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 512)


def test_what_is_of_the_study_and_what_is_not(tmp_path: Path) -> None:
    """Old products lie beside the new ones and look the same; old runs and operands are large."""
    folder = tmp_path / "products" / "night"  # a name that is a folder of results too
    listed = (
        "products/products.h5", "products/products/1-of-1.h5", "records/products.jsonl",
        "products/new.h5", "products/new.uvh5", "products/beams.h5", "products/beams/1-of-2.h5",
        "products/beams/2-of-2.h5", "records/new.jsonl", "records/beams.jsonl",
    )  # fmt: skip
    put(folder, *listed, "records/beams/1-of-2.jsonl", "records/growth.json", "staged/beams.h5")
    put(folder, "runs/beams/2-of-2.h5", "times/new.json", "figures/pareto/beams.svg", ".study")
    files = {f"products/night/{name}": "" for name in listed}  # from where the run was
    manifest = {"study": "products/night/study.yaml", "files": files}
    write_object(folder / "manifest.json", manifest)
    assert left_over(folder) == ""
    put(folder, "products/old.h5", "products/old.uvh5", "products/beams/1-of-4.h5")
    put(folder, "staged/old.h5", "runs/beams/1-of-4.h5", "times/old.json", "records/old.jsonl")
    put(folder, "figures/products/old.svg")
    old = [f"{folder}/products/{name}" for name in ("beams/1-of-4.h5", "old.h5", "old.uvh5")]
    others = "5 files in figures, records, runs, staged, times (2.5 KiB)"
    assert left_over(folder) == ", ".join([*old, others])
    put(folder, *(f"products/old/{number:02}-of-20.h5" for number in range(1, 21)))
    assert ", 13 more products, 5 files in " in left_over(folder)


def test_nobody_can_say_so_without_a_manifest(tmp_path: Path) -> None:
    put(tmp_path, "products/old.h5")
    assert left_over(tmp_path) == ""
    (tmp_path / "manifest.json").write_text("{}")
    assert left_over(tmp_path) == ""
