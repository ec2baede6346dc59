"""``argand run|check|report|compare``, also ``python -m workflow.command``: what users type.

``make`` calls the same. Snakemake is started as its users start it; what follows ``--`` is for it.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from argand.command.children import INTERRUPTED, ended, finished
from argand.runtime.files.whole_files import atomic_path

from workflow.config.mistakes import StudyError
from workflow.executor import executor_of
from workflow.outcome.leftovers import left_over
from workflow.preflight.check import main as check
from workflow.preflight.file_names import folder_of, named_folder
from workflow.profile import ProfileError, check_profile, lacks_jobs
from workflow.storage.run_folder import FolderHeldError, check_folder
from workflow.storage.run_metadata import check_metadata

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_STUDY = ROOT / "config" / "config.yaml"
MISTAKE = 2
_WITHOUT_JOBS = (
    "dryrun", "dag", "rulegraph", "filegraph", "d3dag", "summary", "detailed_summary", "lint",
    "list_rules", "list_target_rules", "list_changes", "list_input_changes", "list_params_changes",
    "list_untracked", "list_conda_envs", "unlock", "cleanup_metadata", "cleanup_shadow",
    "delete_all_output", "delete_temp_output", "archive", "containerize", "generate_unit_tests",
    "conda_create_envs_only", "conda_cleanup_envs", "report",
)  # fmt: skip
"""Snakemake's options with which no job runs, as its parser names them."""


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, 1 where a study failed, 2 for a wrong command line."""
    name, *rest = words or sys.argv[1:] or [""]
    if name not in (*_HELP, "compare"):
        print(f"must be one of {[*_HELP, 'compare']}, got {name!r}", file=sys.stderr)
        return MISTAKE
    if name == "compare":
        # Here: it draws, and Matplotlib takes longer to import than a check takes.
        from workflow.compare.__main__ import main as compare

        return compare(rest)
    rest, options = _divided(rest)
    given = _parser(name).parse_args(rest)
    try:
        folder = folder_of(given.study) if given.out is None else named_folder(given.out)
    except StudyError as error:
        print(error, file=sys.stderr)
        return MISTAKE
    parsed = _parsed(options)
    keys = (parsed.config or []) if parsed else []
    if any(key.partition("=")[0] in ("study", "out") for key in keys):
        print("study and out are named before --: STUDY --out PATH", file=sys.stderr)
        return MISTAKE
    limited = parsed and (parsed.jobs or parsed.cores)
    if given.profile and not limited and lacks_jobs(given.profile):
        print(
            f"{given.profile}/config.yaml: jobs: missing; it is needed: how many jobs may be "
            "submitted at once, such as 100 (or -- --jobs 100)",
            file=sys.stderr,
        )
        return MISTAKE
    snakemake = _snakemake(given, folder, keys)
    if name == "report":
        if _is_refused(given.study, folder):
            return 1
        if not folder.is_dir():
            print(f"there are no results in {folder}: argand run makes them", file=sys.stderr)
            return 1
        return _report(snakemake, folder)
    flags = ["--elsewhere"] if _submits(given.profile) else []
    flags += ["--brief"] if name == "run" else []
    try:
        overrides = _overrides(keys)
    except ValueError as error:
        print(
            f"--config: must be keys of a study, such as seed=3, got {keys} ({error})",
            file=sys.stderr,
        )
        return MISTAKE
    checked = check([*flags, f"--out={folder}", "--", str(given.study)], overrides)
    if checked or name == "check":
        return checked
    if keys:  # Snakemake takes the last --config alone, so the study would be lost
        options = [*options, "--config", *_config(given, folder, keys)]
    runs_jobs = not options or (parsed is not None and not _run_no_job(parsed))
    return _run([*snakemake, *options], snakemake, given.study, folder, runs_jobs)


def _run(run: list[str], snakemake: list[str], study: Path, folder: Path, runs_jobs: bool) -> int:
    if _is_refused(study, folder):
        return 1
    answer = folder / "answer.html"
    before = _written(answer)
    status = finished(run)
    if not runs_jobs:
        return status
    reported = status
    if status != INTERRUPTED:  # the folder is free again, so another run may have taken it
        reported = 1 if _is_refused(study, folder) else _report(snakemake, folder)
    if reported == INTERRUPTED:
        print("Interrupted: the same command goes on from here", file=sys.stderr)
        return INTERRUPTED
    if status:
        where = f"{answer} says what failed" if _written(answer) != before else "see above"
        print(f"Not all of it: {where}", file=sys.stderr)
        return status
    pages = []
    if _written(answer):
        text = answer.with_suffix(".md")
        pages = [f"{answer}, which begins with the answer ({text} on a terminal)"]
    pages += [] if reported else [f"{folder}/report.html"]
    done = "Done but for the report" if reported else "Done"
    print(f"{done}: open {', or '.join(pages)}" if pages else done)
    if left := left_over(folder):
        print(f"Left from before, not of the study as it is now: {left}")
    return reported


def _parsed(options: list[str]) -> argparse.Namespace | None:
    """Return options as Snakemake's own parser reads them; None where it ends.

    It does so at --help and --version, and at what is none of its options. Options may be cut
    short, as ``--summ``, or stand together, as ``-np``.
    """
    if not options:
        return None
    # Here: it takes more than a second to import, which most runs need not wait for.
    from snakemake.cli import get_argument_parser  # type: ignore[import-untyped]

    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            given: argparse.Namespace = get_argument_parser().parse_known_args(options)[0]
    except SystemExit:
        return None
    return given


def _overrides(keys: Sequence[str]) -> dict[str, Any]:
    """Return the keys of a study that --config gives, as Snakemake reads them."""
    if not keys:
        return {}
    from snakemake.cli import parse_config

    found: dict[str, Any] = parse_config(keys)
    return found


def _run_no_job(given: argparse.Namespace) -> bool:
    return any(getattr(given, name) not in (None, False) for name in _WITHOUT_JOBS)


def _is_refused(study: Path, folder: Path) -> bool:
    """Return whether a folder is another run's, another study's or not known here, and say so."""
    try:
        check_folder(study, folder)
        check_metadata(folder)
    except FolderHeldError as error:
        print(error, file=sys.stderr)
        return True
    return False


def _written(page: Path) -> int | None:
    """Return when a file was written last, in nanoseconds; None where there is none."""
    try:
        return page.stat().st_mtime_ns
    except OSError:
        return None


def _report(snakemake: list[str], folder: Path) -> int:
    """Make Snakemake's report of what is there, also after a run that failed; return its status.

    Snakemake may leave half a page, as on a disk that is full, so it writes elsewhere.
    """
    page = folder / "report.html"
    try:
        with tempfile.TemporaryDirectory() as scratch:
            made = Path(scratch) / "report.html"
            command = [*snakemake, "reported", "--quiet", "all", "--report", str(made)]
            status = finished(command)
            if not status:
                with atomic_path(page) as path:
                    shutil.copyfile(made, path)
            return status
    except OSError as error:
        print(f"{page}: the report was not written: {error}", file=sys.stderr)
        return 1


def _snakemake(given: argparse.Namespace, folder: Path, keys: list[str]) -> list[str]:
    """Return the command line.

    An option follows the keys of --config, which take all words up to it.
    """
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    command += ["--config", *_config(given, folder, keys)]
    if given.profile:
        return [*command, "--workflow-profile", str(given.profile)]
    return [*command, "--cores", given.cores]


def _config(given: argparse.Namespace, folder: Path, keys: list[str]) -> list[str]:
    return [f"study={given.study}", f"out={folder}", *keys]


def _submits(profile: Path | None) -> bool:
    """Return whether the profile names an executor, which has other machines compute."""
    return profile is not None and executor_of(profile) != ""


def _divided(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words before ``--``, and those after it."""
    place = list(words).index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"argand {name}", description=_HELP[name])
    default = Path(os.path.relpath(DEFAULT_STUDY))
    parser.add_argument(
        "study", metavar="STUDY", type=Path, nargs="?", default=default,
        help="a YAML file of workloads, %(default)s where it is not given",
    )  # fmt: skip
    parser.add_argument(
        "--out", metavar="PATH", help="where results go in place of results/<name of the file>"
    )
    parser.add_argument(
        "--profile", type=_profile, help="a folder with Snakemake's options for a cluster"
    )
    parser.add_argument(
        "--cores",
        type=_cores,
        default="all",
        help="how many to use, all of them where it is not given",
    )
    return parser


_HELP = {
    "run": "The study to products, tables, figures and a report. Words after -- are Snakemake's.",
    "check": "The study's mistakes, all at once, or what each step will need of disk, memory and "
    "time, and the axes of each product; runs nothing.",
    "report": "The report of a study again, from what a run left.",
}


def _cores(text: str) -> str:
    if text != "all" and not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"must be a number from 1 on or 'all', got {text!r}")
    return text


def _profile(text: str) -> Path | None:
    if not text:
        return None
    try:
        check_profile(Path(text))
    except ProfileError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


if __name__ == "__main__":
    sys.exit(ended(main))
