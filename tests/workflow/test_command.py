"""Commands that ``argand run`` and ``argand report`` give to Snakemake, without running it."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from argand.command.children import INTERRUPTED

from workflow import command
from workflow.storage.run_folder import claim_folder, hold_folder

TINY = "device: cpu\nworkloads:\n  product: {kind: gemm, m: 8, n: 9, k: 10}\n"


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The command lines that would be run, in a folder with two studies."""
    lines: list[list[str]] = []

    def run(words: list[str]) -> int:
        if "--report" in words:
            Path(words[-1]).write_text("new report")
            words = words[:-1]  # in a folder that is gone afterwards
        lines.append(words[3:])
        return 0

    monkeypatch.setattr(command, "finished", run)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v1.2.yaml").write_text(TINY)
    (tmp_path / "wrong.yaml").write_text(TINY.replace("m: 8", "m: -8"))
    return lines


@pytest.mark.parametrize(
    ("words", "folder"),
    [(["v1.2.yaml"], "results/v1.2"), (["v1.2.yaml", "--out", "elsewhere"], "elsewhere")],
)
def test_a_study_has_a_folder_and_a_report(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], words: list[str], folder: str
) -> None:
    assert command.main(["run", *words, "--cores", "3", "--", "--verbose"]) == 0
    snakefile = ["--snakefile", str(command.ROOT / "Snakefile")]
    # Snakemake takes all words after --config up to the next option for keys.
    ran = [*snakefile, "--config", "study=v1.2.yaml", f"out={folder}", "--cores", "3"]
    assert called == [[*ran, "--verbose"], [*ran, "reported", "--quiet", "all", "--report"]]
    assert capsys.readouterr().out.endswith(f"Done: open {folder}/report.html\n")
    assert Path(folder, "report.html").read_text() == "new report"


@pytest.mark.parametrize(
    "options",
    ["-n", "-np", "-pFn", "--dry-run", "--dryr", "--dag", "--unlock", "--summ", "--lp", "-l",
     "--delete-all-output", "--archive=x.tar.gz", "-R stage -n", "--help"],
)  # fmt: skip
def test_where_no_job_runs_nothing_is_written_or_done(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], options: str
) -> None:
    """Options may be cut short, or stand together, as Snakemake's parser lets them."""
    words = options.split()
    assert command.main(["run", "v1.2.yaml", "--", "--quiet", *words]) == 0
    assert [one[-len(words) :] for one in called] == [words]
    assert "Done" not in capsys.readouterr().out
    assert not Path("results").exists()


@pytest.mark.parametrize("is_copy", [False, True])
@pytest.mark.parametrize("name", ["run", "report"])
def test_a_folder_of_another_study_keeps_its_report(
    called: list[list[str]],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
    is_copy: bool,
) -> None:
    folder = tmp_path / "results"
    hold_folder(folder).close()
    if is_copy:  # of what the folder holds, without its lock
        (folder / ".lock").unlink()
    claim_folder(tmp_path / "other.yaml", folder)
    (folder / "report.html").write_text("old report")
    assert command.main([name, "v1.2.yaml", "--out", "results"]) == 1
    assert "has the results of other.yaml, not of v1.2.yaml" in capsys.readouterr().err
    assert (called, (folder / "report.html").read_text()) == ([], "old report")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report", "v1.2.yaml"], "there are no results in results/v1.2: argand run"),
        (["run", "wrong.yaml"], "workloads.product.m: "),
        (["check", "other.yaml"], "there is no file other.yaml (looked in {here})"),
        (["check", "v1.2.yaml", "--", "--config", "device=tpu"], "device: must be one of "),
        (["run", "v1.2.yaml", "--", "--config", "precisions=[fp33]"], "did you mean 'fp32'?"),
    ],
)
def test_what_cannot_be_done_is_said(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert command.main(words) == 1
    assert message.format(here=Path.cwd()) in capsys.readouterr().err
    assert called == []


def test_keys_of_a_config_keep_the_study(
    called: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Snakemake takes the last --config alone: it would run the default study."""
    assert command.main(["run", "v1.2.yaml", "--", "--config", "device=cpu", "--forceall"]) == 0
    last = [[*words, "--"][len(words) - words[::-1].index("--config") :] for words in called]
    assert len(called) == 2
    assert all(words[:3] == ["study=v1.2.yaml", "out=results/v1.2", "device=cpu"] for words in last)
    wrong = {"study=b.yaml": "named before --", "workloads.a.m=2": "must be keys of a study, such"}
    for key, said in wrong.items():
        assert command.main(["run", "v1.2.yaml", "--", "--config", key]) == command.MISTAKE
        assert said in capsys.readouterr().err
    assert len(called) == 2


def test_names_that_begin_with_a_hyphen(called: list[list[str]]) -> None:
    Path("-x.yaml").write_text(TINY)
    assert command.main(["run", "./-x.yaml", "--out=-results"]) == 0
    assert all({"study=-x.yaml", "out=-results"} <= {*words} for words in called)


def test_a_folder_in_which_a_run_works_is_left_alone(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with hold_folder(tmp_path / "results"):
        assert command.main(["run", "v1.2.yaml", "--out", "results"]) == 1
    assert f"another run (process {os.getpid()} " in capsys.readouterr().err
    assert called == []
    assert command.main(["run", "v1.2.yaml", "--out", "results"]) == 0


@pytest.mark.parametrize("out", ["results", "results/night"])
def test_a_file_in_the_place_of_the_results_is_named(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], out: str
) -> None:
    Path("results").touch()
    assert command.main(["run", "v1.2.yaml", "--out", out]) == 1
    assert "results: found a file where there must be a folder" in capsys.readouterr().err
    assert called == []


@pytest.mark.parametrize("out", ["results", "results/night"])
def test_results_that_a_link_leads_nowhere_for(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], out: str
) -> None:
    """The disk that it leads to may not be mounted."""
    Path("results").symlink_to("/no/such/disk")
    assert command.main(["run", "v1.2.yaml", "--out", out]) == 1
    assert "results: a link to /no/such/disk, where nothing is: mount" in capsys.readouterr().err
    assert called == []


@pytest.mark.parametrize("name", ["run", "report"])
@pytest.mark.parametrize("read_only", ["results", ".", "cache"])
def test_a_folder_that_cannot_be_written_to(
    called: list[list[str]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    read_only: str,
) -> None:
    """A stand-in answers for the file system, since root may write to every other folder."""
    for folder in ("results", "cache"):
        Path(folder).mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("cache").absolute()))
    kept, unwritable = os.access, Path(read_only).absolute()

    def access(path: Path, mode: int) -> bool:
        return bool(Path(path).absolute() != unwritable and kept(path, mode))

    monkeypatch.setattr(os, "access", access)
    assert command.main([name, "v1.2.yaml", "--out", "results"]) == 1
    said = f"{unwritable}: must be a folder that can be written to, for "
    assert said in capsys.readouterr().err
    assert called == []


def test_a_report_for_which_the_disk_has_no_room(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path, path: Path) -> None:
        path.write_text("new")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    hold_folder(Path("results")).close()
    Path("results/report.html").write_text("old report")
    Path("results/answer.html").write_text("answer")
    monkeypatch.setattr(shutil, "copyfile", full)
    assert command.main(["run", "v1.2.yaml", "--out", "results"]) == 1
    said = capsys.readouterr()
    assert "results/report.html: the report was not written: " in said.err
    assert "Done but for the report: open results/answer.html" in said.out
    assert sorted(x.name for x in Path("results").glob("[!.]*")) == ["answer.html", "report.html"]


def test_a_report_without_a_temporary_folder(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("results").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", "gone")
    assert command.main(["report", "v1.2.yaml", "--out", "results"]) == 1
    assert "results/report.html: the report was not written: " in capsys.readouterr().err


def test_an_answer_is_named_only_where_the_run_wrote_one(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_folder(Path("results")).close()
    Path("results/answer.html").write_text("of an earlier run")
    monkeypatch.setattr(command, "finished", lambda words: 1)
    assert command.main(["run", "v1.2.yaml", "--out", "results"]) == 1
    assert "Not all of it: see above" in capsys.readouterr().err


def test_an_answer_is_named_as_a_page_and_as_text(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_folder(Path("results")).close()
    report = command.finished

    def run(words: list[str]) -> int:
        Path("results/answer.html").write_text("of this run")
        return report(words)

    monkeypatch.setattr(command, "finished", run)
    assert command.main(["run", "v1.2.yaml", "--out", "results"]) == 0
    assert capsys.readouterr().out.endswith(
        "Done: open results/answer.html, which begins with the answer (results/answer.md on a "
        "terminal), or results/report.html\n"
    )


@pytest.mark.parametrize("statuses", [[INTERRUPTED], [0, INTERRUPTED]])
def test_a_run_that_is_interrupted_says_how_it_goes_on(
    called: list[list[str]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    statuses: list[int],
) -> None:
    """An interrupt comes while jobs run, so no report is begun, or while it is made."""
    ended = iter(statuses)
    monkeypatch.setattr(command, "finished", lambda words: next(ended))
    assert command.main(["run", "v1.2.yaml"]) == INTERRUPTED
    said = capsys.readouterr()
    assert said.err == "Interrupted: the same command goes on from here\n"
    assert "Done" not in said.out


@pytest.mark.parametrize("cores", ["0", "x", "-1", "1.5", ""])
def test_cores_are_a_number_or_all(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], cores: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(["check", "v1.2.yaml", f"--cores={cores}"])
    assert "must be a number from 1 on or 'all'" in capsys.readouterr().err
    assert called == []


def test_a_cluster_computes(called: list[list[str]], tmp_path: Path) -> None:
    profile = tmp_path / "ours"
    profile.mkdir()
    (profile / "config.yaml").write_text("executor: slurm\njobs: 4\n")
    (tmp_path / "v1.2.yaml").write_text(TINY.replace("cpu", "cuda"))  # no GPU is needed here
    assert command.main(["run", "v1.2.yaml", "--profile", str(profile)]) == 0
    assert called[0][-2:] == ["--workflow-profile", str(profile)]


def test_jobs_of_a_profile_may_be_given_behind_it(called: list[list[str]]) -> None:
    Path("ours").mkdir()
    Path("ours/config.yaml").write_text("executor: slurm")
    assert command.main(["run", "v1.2.yaml", "--profile", "ours"]) == command.MISTAKE
    assert called == []
    assert command.main(["run", "v1.2.yaml", "--profile", "ours", "--", "--jobs", "4"]) == 0
    assert called[0][-2:] == ["--jobs", "4"]


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--profile", "no/such"],
        ["run", "v1.2.yaml", "--out", "."],
        ["run", "v1.2.yaml", "--out="],
        ["check", "-x"],
        ["rnu"],
    ],
)
def test_wrong_words(called: list[list[str]], words: list[str]) -> None:
    try:
        status = command.main(words)
    except SystemExit as ended:
        status = int(str(ended.code))
    assert (status, called) == (command.MISTAKE, [])
