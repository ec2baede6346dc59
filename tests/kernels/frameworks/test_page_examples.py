"""The Python examples of README.md and of the pages of docs run as they stand, on the CPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((DOCS / "kernels").glob("*.md"))]
LIBRARIES = ("torch", "jax")


def drawn(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal((*shape, 2)).view(complex)[..., 0]


def whole(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-8, 8, (*shape, 2), dtype=np.int8)


def covariances(*shape: int) -> Any:
    x = drawn(*shape)
    return x @ x.conj().swapaxes(-1, -2)


def tensor() -> Any:
    import torch

    return torch.ones(8, 8, dtype=torch.complex64)


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "Products": lambda: {"w": drawn(4, 8), "receiver": [whole(8, 16)], "a": drawn(4, 8),
                         "b": drawn(8, 3), "x": whole(4, 8), "y": whole(8, 3)},
    "Contractions": lambda: {"a": drawn(2, 3, 4), "b": drawn(2, 4, 5), "noise": drawn(5),
                             "samples": drawn(2, 3, 4), "weights": drawn(5, 4)},
    "Products of other libraries' calls": lambda: {"model": abs, "x": drawn(3)},
    "Hermitian products": lambda: {"x": drawn(2, 3, 8), "voltages": whole(2, 3, 8),
                                   "int8": whole(2, 3, 8)},
    "Systems of equations": lambda: {"r": np.eye(4) + 0j, "steering": drawn(4, 2)},
    "Signals of antennas": lambda: {
        "voltages": drawn(4, 4096), "positions": np.eye(4, 3), "hertz": 1e8 + np.arange(64),
        "directions": np.zeros((3, 2)), "weights": drawn(64, 2, 4)},
    "Gates and circuits": lambda: {"circuit": SimpleNamespace(data=[]), "Operator": np.asarray},
    "Counts and expectation values": lambda: {"state": np.eye(1, 2**20, dtype="complex64")[0]},
    "Plans": lambda: {"a": drawn(4, 8), "b": drawn(8, 3),
                      "batches": [(drawn(4, 8), drawn(8, 3), np.empty((4, 3), "complex64"))]},
    "Gradients, compiled code, graphs": lambda: {"a": tensor()},
    "Dense complex systems": lambda: {"a": drawn(8, 8), "b": drawn(8, 2)},
    "Small Hermitian systems": lambda: {"r": covariances(3, 4, 4), "steering": drawn(4, 2),
                                        "b": drawn(3, 4, 2)},
    "Images: power over directions": lambda: {
        "r": covariances(2, 4, 4), "positions": np.eye(4, 3), "frequencies": [1e8, 2e8],
        "lm": np.zeros((3, 2))},
    "Beam power": lambda: {"weights": drawn(2, 4), "voltages": whole(4, 64)},
}  # fmt: skip
"""Names that the text around a section's examples introduces, by section."""


def sections(page: Path) -> list[tuple[str, str]]:
    """Return the titles of a page's sections that have examples, and these.

    Those that read the results of a study are left out: `tests/workflow` has them.
    """
    title, found = "", dict[str, str]()
    for part in re.split(r"(```.*?```)", page.read_text(), flags=re.DOTALL):
        code = part.removeprefix("```python\n")
        if code != part:
            found[title] = found.get(title, "") + code.removesuffix("```")
        elif not part.startswith("```"):
            *_, title = title, *re.findall(r"^#+ (.+)$", part, re.MULTILINE)
    return [(title, code) for title, code in found.items() if '"results/' not in code]


@pytest.mark.parametrize(
    ("title", "code"), [section for page in PAGES for section in sections(page)],
    ids=lambda x: x if "\n" not in x else "",
)  # fmt: skip
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:Torchinductor:UserWarning",
)  # fmt: skip
def test_examples_run_as_they_stand(
    title: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in LIBRARIES:
        if re.search(rf"^import .*{library}", code, re.MULTILINE):
            pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, title, "exec"), GIVEN.get(title, dict)())
