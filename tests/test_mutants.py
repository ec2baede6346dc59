"""The runner of mutations, on a tree of two files: what is caught, what survives and is refused."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.__main__ import CannotRunError, is_caught, planted, verdicts
from tests.mutants.drawn import GROUPS, drawn, mirrored_tests
from tests.mutants.mutations import MUTATIONS, Mutation

CODE = "def larger(a, b):\n    return a if a > b else b\n"
TESTS = """
from pathlib import Path
from code_of_it import larger
from tests.covers import EXHAUSTIVE

def test_larger():
    assert larger(2, 1) == 2
    assert not EXHAUSTIVE or larger(1, 2) == 2
"""
SEEN = Mutation("the smaller", "code_of_it.py", "a > b", "a < b", ("test_it.py",))
SEEN_BY_ALL = Mutation("the first", "code_of_it.py", "a if a > b else b", "a", ("test_it.py",))
UNSEEN = Mutation("of equals the first", "code_of_it.py", "a > b", "a >= b", ("test_it.py",))


@pytest.fixture
def tree(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer than the tests
    (tmp_path / "code_of_it.py").write_text(CODE)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "covers.py").write_text((root / "tests" / "covers.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    gpu: none\n")
    return tmp_path


def test_what_each_run_catches(tree: Path) -> None:
    found = dict(verdicts(tree, [SEEN, SEEN_BY_ALL, UNSEEN], longer="missed"))
    assert found == {
        SEEN: {"short": True, "all": True},
        SEEN_BY_ALL: {"short": False, "all": True},
        UNSEEN: {"short": False, "all": False},
    }
    assert (tree / "code_of_it.py").read_text() == CODE


def test_tests_that_cannot_run_catch_nothing(tree: Path) -> None:
    broken = Mutation("no Python", "code_of_it.py", "return", "retur n", ("test_it.py",))
    with pytest.raises(CannotRunError, match="SyntaxError"):
        is_caught(tree, broken, "short")
    assert (tree / "code_of_it.py").read_text() == CODE


def test_a_mutation_has_one_place() -> None:
    for text in ("a a", "b"):
        with pytest.raises(CannotRunError, match=r"'a' must be there once"):
            planted(Mutation("x", "file.py", "a", "b", ()), text)


def test_what_a_seed_draws_is_another_program(root: Path) -> None:
    found = drawn(root, 6, 1)
    assert found == drawn(root, 6, 1) != drawn(root, 6, 2)
    assert len(found) == 6 * len(GROUPS)
    for mutation in found:
        text = (root / mutation.file).read_text()
        trees = [ast.dump(ast.parse(one)) for one in (text, planted(mutation, text))]
        assert trees[0] != trees[1], mutation
        assert mutation.tests
        assert all((root / test).is_file() for test in mutation.tests)


def test_the_tests_of_a_file_are_beside_it(root: Path) -> None:
    assert mirrored_tests(root, Path("kernels/argand/rounding.py")) == (
        "tests/kernels/test_rounding.py",
    )
    found = mirrored_tests(root, Path("workflow/storage/slabs.py"))
    assert "tests/workflow/storage/test_slabs.py" in found
    assert all(test.startswith("tests/workflow/storage/") for test in found)


def test_every_mutation_fits_the_tree(root: Path) -> None:
    for mutation in MUTATIONS:
        text = (root / mutation.file).read_text()
        assert planted(mutation, text) != text, mutation.name
        assert mutation.tests, mutation.name
        assert all((root / test).is_file() for test in mutation.tests), mutation.name
