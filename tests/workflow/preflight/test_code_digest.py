"""The steps that an edit runs again: digests of the code that each step calls."""

from __future__ import annotations

import ast
import importlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from argand.device import cpu
from argand.runtime.measuring.ceilings import Ceilings

from benchmarks.peers import study_modules
from workflow.figures.study import draw_pareto, draw_product
from workflow.preflight import code_digest as module
from workflow.preflight.code_digest import AROUND, ROOT, code_digest, code_of
from workflow.preflight.loading import load_study
from workflow.shards import shards
from workflow.steps.combining import combine
from workflow.steps.delivery import deliver
from workflow.steps.execute import execute
from workflow.steps.gathering import gather
from workflow.steps.staging import stage
from workflow.steps.verification import verify
from workflow.storage.products import read_product
from workflow.workloads import KINDS

LOG = logging.getLogger("test")
STEPS = [path.stem for path in (ROOT / "workflow" / "scripts").glob("*.py")]
CASES: dict[str, dict[str, Any]] = {
    "gemm": {"m": 8, "n": 9, "k": 10, "batch": 2},
    "beamforming": {"channels": 2, "beams": 3, "antennas": 4, "samples": 16},
    "dft": {"length": 60, "batch": 4, "window": "hann"},
    "softmax": {"rows": 4, "columns": 65},
    "statevector": {"circuit": {"name": "ghz", "qubits": 5}},
}


SOURCES = (ROOT / "workflow", ROOT / "benchmarks" / "peers")


def sources() -> Iterator[Path]:
    """Every file whose edit some step may see."""
    for folder in SOURCES:
        yield from folder.rglob("*.py")


def digests() -> dict[str, str]:
    """Return the digests of the steps of a gemm workload."""
    return {step: code_digest(step, *names("gemm", step)) for step in STEPS}


def names(kind: str, step: str) -> tuple[str, ...]:
    """The modules that the rule of a step names beside its script."""
    return (KINDS[kind].__module__, *(study_modules() if step == "run" else ()))


def forget() -> None:
    """Clear the caches of modules that were read, which another process does not have."""
    for function in (code_digest, module._text, module._imported, module._file):
        function.cache_clear()


@pytest.fixture
def fresh() -> Iterator[Callable[[], None]]:
    """Forgets, and again behind the test."""
    yield forget
    forget()


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package."""
    folder = tmp_path_factory.mktemp("copy")
    for path in sources():
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
    return folder


@pytest.fixture(scope="module")
def unedited(copied: Path) -> dict[str, str]:
    """The digests of the copy: a test that edits it undoes that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROOT", copied)
        forget()
        return digests()


@pytest.fixture
def tree(copied: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The copy in the place of the package; a test that edits it undoes that."""
    monkeypatch.setattr(module, "ROOT", copied)
    return copied


EDITS = {
    "workflow/accuracy/bounds.py": {
        "verify", "combine", "grade", "tabulate", "draw_study", "draw_growth",
    },
    "workflow/steps/verification.py": {"verify"},
    "workflow/inputs/hdf5_operands.py": {
        "stage", "run", "verify", "combine", "deliver", "gather", "draw",
    },
    "workflow/drawn.py": {"stage", "run", "verify", "deliver"},
    "workflow/storage/products.py": {"deliver", "gather", "draw"},
    "workflow/workloads/gemm.py": {
        "stage", "run", "verify", "combine", "deliver", "gather", "draw",
    },
    "workflow/workloads/dft.py": set(),
    "workflow/tables/study.py": {"tabulate", "tabulate_shards"},
    "workflow/measuring/timing.py": {"run"},
    "workflow/jobs/joblog.py": set(),
    "benchmarks/peers/numpy_matmul.py": {"run"},
    "benchmarks/peers/_registry.py": {"run", "draw", "draw_study", "draw_growth"},
    "benchmarks/peers/triton_planar.py": set(),
}  # fmt: skip
"""The steps of a gemm workload, and of the study, that an edit concerns; others may follow."""
ONLY = (
    "benchmarks/peers/numpy_matmul.py", "workflow/steps/verification.py",
    "workflow/measuring/timing.py",
)  # fmt: skip
"""Edits that concern no others."""


@pytest.mark.parametrize("edited", EDITS)
def test_an_edit_changes_the_digests_of_the_steps_that_call_it(
    edited: str, tree: Path, unedited: dict[str, str], fresh: Callable[[], None]
) -> None:
    fresh()
    file = tree / edited
    text = file.read_text()
    file.write_text(text + "\nEDITED = True\n")
    after = digests()
    file.write_text(text)
    changed = {step for step in STEPS if unedited[step] != after[step]}
    assert changed >= EDITS[edited]
    if edited in ("workflow/accuracy/bounds.py", "workflow/workloads/dft.py"):
        assert not changed & {"stage", "run", "deliver", "gather", "draw"}
    if not EDITS[edited] or edited in ONLY:
        assert changed <= EDITS[edited]


def test_imports_are_found_as_python_finds_them() -> None:
    for path in sources():
        expected = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: an import relative to a package is not followed"
                expected |= {str(node.module)}
                expected |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                expected |= {alias.name for alias in node.names}
        missed = {name for name in expected if module._within(name, module.FOLLOWED)}
        missed -= module._imported(path)
        assert not missed, f"{path}: {missed}"


class Called:
    """The files of the package of which functions are called in a block, but for imports."""

    def __init__(self) -> None:
        self.files: set[Path] = set()
        self._seen: set[int] = set()

    def _look(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or id(code) in self._seen:
            return
        self._seen.add(id(code))
        path = Path(code.co_filename)
        if any(path.is_relative_to(folder) for folder in SOURCES):
            self.files.add(path)

    def __enter__(self) -> Called:
        threading.settrace(self._look)
        sys.settrace(self._look)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)
        threading.settrace(None)


def files(*modules: str) -> set[Path]:
    return {path for name in modules if (path := module._file(name)) is not None}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.exhaustive] * (kind in ("beamforming", "softmax")))
        for kind in CASES
    ],
)
def test_steps_call_nothing_that_their_digests_leave_out(kind: str, tmp_path: Path) -> None:
    """Every function that a step of a kind calls, in any thread, is in a file of its digest."""
    for path in sources():  # what importing calls would count otherwise
        if "scripts" not in path.parts and not path.stem.startswith("_triton"):
            relative = path.relative_to(ROOT).with_suffix("")
            importlib.import_module(".".join(relative.parts).removesuffix(".__init__"))
    count = 1 if kind == "statevector" else 2
    study = load_study({
        "precisions": ["3xfp16"],
        "workloads": {
            "w": {"kind": kind, "shards": count, "precision": "3xfp16", **CASES[kind]},
        },
    })  # fmt: skip
    workload, found = study.workload("w"), {}
    staged = tmp_path / "staged.h5"
    called: dict[str, set[Path]] = {}

    def step(name: str, function: Callable[..., Any], *given: Any) -> Any:
        with Called() as seen:
            result = function(*given)
        called.setdefault(name, set()).update(seen.files)
        return result

    step("stage", stage, workload, [], staged, LOG)
    parts = shards(count) if count > 1 else (None,)
    ceilings = Ceilings("another", 10.0, {})
    for part in parts:
        run = tmp_path / f"run-{part}.h5".replace("/", "-")
        step("run", execute, workload, staged, run, cpu(), LOG, part)
        found[part] = step("verify", verify, workload, staged, run, ceilings, LOG, part)
    whole = found[None] if count == 1 else step("combine", combine, workload, staged, found, LOG)
    products = {}
    for part in parts:
        run = tmp_path / f"run-{part}.h5".replace("/", "-")
        products[part] = tmp_path / f"product-{part}.h5".replace("/", "-")
        step("deliver", deliver, workload, part, staged, run, whole, found[part], products[part],
             LOG)  # fmt: skip
    product = products[parts[0]]
    if count > 1:
        product = tmp_path / "product.h5"
        step("gather", gather, workload, staged, products, whole, product, LOG)
    read = step("draw", read_product, product)
    step("draw", draw_product, tmp_path / "product.svg", workload.picture, read)
    if kind == "gemm":  # it knows no kind
        step("draw", draw_pareto, tmp_path / "pareto.svg", "w", whole)
    for name, seen in called.items():
        allowed = set(code_of(name, *names(kind, name))) | files(*AROUND)
        assert seen, name
        assert not seen - allowed, name
