"""Names that become names of files: what the check accepts, Snakemake takes."""

from __future__ import annotations

import json
import os
import random
import re
import string
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from slurm_project import Project
from snakemake_forks import run_snakemake

from tests.covers import EXHAUSTIVE, examples
from workflow.config.mistakes import StudyError
from workflow.preflight import file_names
from workflow.preflight.check import check_study
from workflow.preflight.file_names import check_for_jobs, folder_of, named_folder
from workflow.preflight.loading import load_study

SETTINGS = {"device": "cpu", "precisions": ["fp32"], "baselines": "none"}
NAMES = [
    "a", "A", "b", "a.h5", "A.H5", "a.h5.h5", "a.jsonl", "a.log", "a.svg", "a.tsv", "ceilings",
    "growth", "ceilings.json", "growth.json", "Growth.JSON", "a.", "a..h5", "0", "1e5", "true",
    "results", "01-of-02", "a-", "all", "x" * 19, "x" * 20, "yx" * 10, "ab" * 20,
    "x" * 40 + "y", "abcdefghijk" * 18,
]  # fmt: skip


def study_of(names: dict[str, int]) -> dict[str, Any]:
    """Small products by name, in so many shards."""
    sizes = {"kind": "gemm", "m": 8, "n": 9, "k": 10, "batch": 2}
    return {
        **SETTINGS,
        "workloads": {name: {**sizes, "shards": count} for name, count in names.items()},
    }


def error_of(study: dict[str, Any]) -> list[str]:
    try:
        check_study(load_study(study))
    except StudyError as error:
        return error.mistakes
    return []


@pytest.mark.parametrize(
    ("names", "path"),
    [
        ({"a": 1, "a.h5": 2}, "runs/a.h5"),
        ({"a.h5": 2, "a": 1}, "products/a.h5"),
        ({"a": 2, "a.h5": 2}, "products/a.h5"),
        ({"a": 1, "a.jsonl": 2}, "records/a.jsonl"),
        ({"a": 1, "a.log": 2}, "logs/"),
        ({"a": 1, "a.tsv": 2}, "benchmarks/run/a.tsv"),
        ({"a": 1, "A": 1}, "staged/"),
        ({"a": 1, "A.H5": 2}, "runs/a.h5"),
        ({"growth.json": 2}, "records/growth.json of the study"),
    ],
)
def test_results_in_each_others_way(names: dict[str, int], path: str) -> None:
    (line,) = error_of(study_of(names))
    assert line.startswith(f"workloads.{list(names)[-1]}: its results/")
    assert f"results/{path}" in line
    assert "give one of them another name" in line


def test_every_file_of_a_rule_is_known_by_its_pattern(root: Path) -> None:
    """A file under the name of a workload or part may be in another one's way."""
    files = [root / "Snakefile", *(root / "workflow" / "rules").glob("*.smk")]
    text = "".join(path.read_text() for path in files)
    found = set(re.findall(r'"<results>/([^"]*\{(?:workload|part)\}[^"]*)"', text))
    of_workload = (*file_names.OF_WORKLOAD, *file_names.OF_SHARDED, *file_names.OF_EXPORTED)
    known = {pattern.format("{workload}") for pattern in of_workload}
    known |= {pattern.format("{part}") for pattern in file_names.OF_PART}
    assert found | {"times/{part}.json"} == known, "the script of run writes the times"


def test_an_export_in_the_way_of_shards() -> None:
    study = study_of({"a.uvh5": 2})
    site = {"latitude_deg": 1, "longitude_deg": 2, "julian_date": 2459000.5, "channel_width_hz": 1}
    pairs = {"kind": "correlate", "antennas": 4, "samples": 32, "integrate": 8, "uvh5": site}
    study["workloads"]["a"] = pairs
    (line,) = error_of(study)
    assert line.startswith("workloads.a: its results/products/a.uvh5 would be in the way of")


@pytest.mark.parametrize(
    "names", [{"a": 2, "a.h5": 1}, {"a.h5": 1, "a": 1}, {"growth.json": 1}, {"growth": 2, "b": 2}]
)
def test_names_that_only_look_alike(names: dict[str, int]) -> None:
    assert error_of(study_of(names)) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(3)))
def test_snakemake_takes_every_study_that_the_check_accepts(
    seed: int, root: Path, tmp_path: Path
) -> None:
    """Run as many of the names as are accepted, in an order and in shards that chance decides.

    The short run draws half of them: a dry run takes as long as there are jobs.
    """
    chance = random.Random(seed)
    names: dict[str, int] = {}
    for name in chance.sample(NAMES, len(NAMES) if EXHAUSTIVE else len(NAMES) // 2):
        more = {**names, name: chance.choice([1, 2])}
        names = names if error_of(study_of(more)) else more
    assert len(names) >= (12 if EXHAUSTIVE else 8)
    project = Project(root, tmp_path, dict(os.environ), json.dumps(study_of(names)))
    said = project.run("--dry-run")
    assert f"stage    {next(iter(names))}" in said


@pytest.mark.parametrize("name", ["x" * 20, "x" * 200, "a.b" * 20, "y" + "ab" * 20])
def test_names_that_snakemake_takes_for_a_circle(name: str) -> None:
    (line,) = error_of(study_of({name: 1}))
    assert "twenty times in a row" in line


def input_study(*files: str) -> dict[str, Any]:
    cases = {
        f"w{i}": {"kind": "gemm", "input": {"file": file, "a": "x", "b": "x"}}
        for i, file in enumerate(files)
    }
    return {**SETTINGS, "workloads": cases}


def put(*files: str) -> None:
    for name in files:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(name, "w") as file:
            file["x"] = np.eye(4, dtype=np.complex64)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a{b}.h5", "got '{' in 'a{b}.h5'"),
        ("a{{b}}.h5", "rename the file"),
        ("{workload}.h5", "rename the file"),
        ("of/<b>/a.h5", "got '<' in 'of/<b>/a.h5'"),
        ("results/products/w0.h5", "must not lie in results/"),
        ("results/old/other.h5", "must not lie in results/"),
    ],
)
def test_inputs_that_snakemake_misreads(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(name)
    for given in (name, str(tmp_path / name)):
        (line,) = error_of(input_study(given))
        assert line.startswith("workloads.w0: ")
        assert message.split(" in ")[0] in line
    Path("link.h5").symlink_to(name)
    assert len(error_of(input_study("link.h5"))) == name.startswith("results")


def test_inputs_changed_in_the_future(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Snakemake would say so after the file was staged, and remove what was made of it."""
    monkeypatch.chdir(tmp_path)
    put("in.h5")
    for ahead_s, lines in (
        (10, []), (115, ["changed 0.032 h from"]), (9070, ["'in.h5' was changed 2.5 h from now"]),
        (2**40, [""]),
    ):  # fmt: skip
        os.utime("in.h5", (0, time.time() + ahead_s))
        found = error_of(input_study("in.h5"))
        assert len(found) == len(lines)
        assert all(line in said for line, said in zip(lines, found, strict=True))


def test_files_that_an_input_names_are_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put("{held}.h5")
    with h5py.File("in.h5", "w") as file:
        file["x"] = h5py.ExternalLink("{held}.h5", "/x")
    study = input_study("in.h5")
    study["workloads"]["w0"]["input"]["external"] = True
    (line,) = error_of(study)
    assert "'{held}.h5'" in line


@pytest.mark.slow
def test_snakemake_takes_every_input_that_the_check_accepts(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every printable character, and what shells, YAML or Snakemake might make something of."""
    monkeypatch.chdir(tmp_path)
    letters = sorted(set(string.printable) - set("/{}<>" + string.ascii_letters + string.digits))
    files = [f"{letter}{i}{letter}.h5" for i, letter in enumerate(letters)]
    files += ["é.h5", "s3:/x.h5", "a//b.h5", "./c.h5", "~d.h5", "x" * 250 + ".h5", "NUL.h5"]
    put(*files)
    study = input_study(*files)
    assert error_of(study) == []
    project = Project(root, tmp_path, dict(os.environ), json.dumps(study))
    project.run("--dry-run", *(f"results/staged/w{i}.h5" for i in range(len(files))))


@pytest.mark.parametrize(
    ("file", "folder"),
    [
        ("config/config.yaml", "config"),
        ("/far/away/night 1.yaml", "night-1"),
        ("a{b}<c>.yml", "a-b-c"),
        ("v1.2.yaml", "v1.2"),
        ("..yaml", "study"),
        (".hidden", "hidden"),
    ],
)
def test_results_are_in_a_folder_of_the_studys_name(file: str, folder: str) -> None:
    assert folder_of(Path(file)) == Path("results") / folder


def test_folders_that_a_user_may_not_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text, why in (
        (".", "for results alone"), ("..", "for results alone"), ("/", "for results alone"),
        ("x/..", "for results alone"), ("{a}", "without '{'"), ("a/<b>", "without '<'"),
        (" ", "can be printed"), ("a ", "can be printed"), ("a\nb", "can be printed"),
        ("\udcff", "can be printed"), ("~/night", "without ~"),
    ):  # fmt: skip
        with pytest.raises(StudyError, match=f"^out: .*{why}"):
            named_folder(text)
    assert named_folder("../night") == Path("../night")
    for path in ("results/night", "./results/night", f"{Path.cwd()}/results/night"):
        assert str(named_folder(path)) == "results/night"
    for text in ("'a", 'a"'):  # Snakemake drops them
        with pytest.raises(StudyError, match=r"^out: .*quotation marks at its ends"):
            named_folder(text)
        with pytest.raises(StudyError, match=r"^study: .*quotation marks at its ends"):
            folder_of(Path(text))


@pytest.mark.parametrize(
    ("study", "out"), [("2026_11_30", "1.10"), ("night #2.yaml", "r: 2"), ("[a] b.yaml", "r #2")]
)
def test_snakemake_takes_paths_as_they_are_typed(
    root: Path, tmp_path: Path, study: str, out: str
) -> None:
    """It reads a number, a comment or a mapping there, and the results would lie elsewhere."""
    text = json.dumps(study_of({"a": 1}))  # JSON is YAML
    (tmp_path / study).write_text(text)
    flags = ["--snakefile", str(root / "Snakefile"), "--cores", "1", "--dry-run", "--config"]
    done = run_snakemake([*flags, f"study={study}", f"out={out}"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"would do  tabulate {out}/tables\n" in done.stderr


def test_paths_that_jobs_of_a_cluster_would_not_be_given(root: Path, tmp_path: Path) -> None:
    for text in ("night $HOME", "it's night", 'a "b"', "`x`", "é #2"):
        check_for_jobs("out", text)
    for text in ("it's $HOME", "it's `x`", "a\\b", 'it\'s "b"'):
        with pytest.raises(StudyError, match=r"^out: the shell of a cluster's job would read"):
            check_for_jobs("out", text)
    name = "it's $HOME.yaml"
    (tmp_path / name).write_text(json.dumps(study_of({"a": 1})))
    flags = ["--snakefile", str(root / "Snakefile"), "--jobs", "1", "--executor", "slurm"]
    done = run_snakemake([*flags, "--dry-run", "--config", f"study={name}"], tmp_path)
    assert done.returncode == 1
    assert (
        "study: the shell of a cluster's job would read another path" in done.stdout + done.stderr
    )


def test_another_studys_product_is_an_input_and_ones_own_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put("results/other/products/w.h5")
    study = input_study("results/other/products/w.h5")
    check_study(load_study(study, folder=Path("results/mine")))
    with pytest.raises(StudyError, match="must not lie in results/other/, where runs of this"):
        check_study(load_study(study, folder=Path("results/other")))
