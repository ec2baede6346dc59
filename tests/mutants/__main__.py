"""Plants each mutation into a copy of the tree and runs the tests that should see it."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.covers import RUNS
from tests.mutants.drawn import drawn
from tests.mutants.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[2]
_LONGEST_S = 1200
"""Tests that take longer have caught the mutation: some never end."""
_PASSED, _FAILED = 0, 1
"""Pytest's statuses; any other says nothing about the mutation."""


class CannotRunError(RuntimeError):
    """The tests could not be run, or a mutation does not fit the tree."""


def copy_tree(root: Path, folder: Path) -> None:
    """Copy what git tracks, and what it would."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, listed):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)


def planted(mutation: Mutation, text: str) -> str:
    """The text with the mutation. Raises CannotRunError where its place is not there once."""
    count = text.count(mutation.before)
    if count != 1 or mutation.before == mutation.after:
        raise CannotRunError(
            f"{mutation.file}: {mutation.before!r} must be there once, is {count} times"
        )
    return text.replace(mutation.before, mutation.after)


def run_tests(tree: Path, tests: Sequence[str], run: str) -> bool:
    """Whether these tests pass in a tree; a run that does not end counts as failed."""
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not gpu",
        *tests,
    ]  # fmt: skip
    paths = os.pathsep.join(map(str, (tree / "kernels", tree)))
    environ = {**os.environ, "PYTHONPATH": paths, "ARGAND_TESTS": run}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environ, capture_output=True, text=True, check=False,
            timeout=_LONGEST_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (_PASSED, _FAILED):
        raise CannotRunError(f"{' '.join(command)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == _PASSED


def is_caught(tree: Path, mutation: Mutation, run: str) -> bool:
    """Whether the mutation's tests fail with it; the tree is as before afterwards."""
    file = tree / mutation.file
    text = file.read_text()
    file.write_text(planted(mutation, text))
    try:
        return not run_tests(tree, mutation.tests, run)
    finally:
        file.write_text(text)


def verdicts(
    tree: Path, mutations: Sequence[Mutation], *, longer: str
) -> Iterator[tuple[Mutation, dict[str, bool]]]:
    """Yield which runs catch each mutation.

    The exhaustive run has every test of the short one, so where ``longer`` is ``missed`` it is
    asked only about what the short one misses; else ``always`` or ``never``.
    """
    for mutation in mutations:
        caught = {"short": is_caught(tree, mutation, "short")}
        asked = longer == "always" or (longer == "missed" and not caught["short"])
        caught["all"] = is_caught(tree, mutation, "all") if asked else caught["short"]
        yield mutation, caught


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each mutation.

    The exit status is 1 where the exhaustive run catches more than the short one, and where a
    drawn one survives.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of mutations")
    parser.add_argument("--drawn", type=int, help="so many that a seed draws of each group")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--longer", choices=("never", "missed", "always"),
        help="when to ask the exhaustive run: missed, or never of drawn ones",
    )  # fmt: skip
    given = parser.parse_args(arguments)
    longer = given.longer or ("never" if given.drawn else "missed")
    chosen = (
        drawn(ROOT, given.drawn, given.seed)
        if given.drawn
        else [one for one in MUTATIONS if not given.only or one.name in given.only]
    )
    lost = 0
    with tempfile.TemporaryDirectory(prefix="argand-mutants-") as name:
        tree = Path(name)
        copy_tree(ROOT, tree)
        tests = sorted({test for mutation in chosen for test in mutation.tests})
        for run in RUNS if longer == "always" else ("short",):
            if not run_tests(tree, tests, run):
                raise CannotRunError(f"tests fail without a mutation: {run} of {' '.join(tests)}")
        print("| mutation | file | short | all |\n| --- | --- | --- | --- |", flush=True)
        for mutation, caught in verdicts(tree, chosen, longer=longer):
            words = ["caught" if caught[run] else "survived" for run in RUNS]
            print(f"| {mutation.name} | {mutation.file} | {' | '.join(words)} |", flush=True)
            lost += (bool(given.drawn) or caught["all"]) and not caught["short"]
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
