"""The Python examples of docs/python.md and docs/frameworks.md run as they stand, on the CPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCS = Path(__file__).parents[3] / "docs"
LIBRARIES = ("torch", "jax")


def drawn(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal((*shape, 2)).view(complex)[..., 0]


def whole(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-8, 8, (*shape, 2), dtype=np.int8)


def tensor() -> Any:
    import torch

    return torch.ones(8, 8, dtype=torch.complex64)


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "Products": lambda: {"w": drawn(4, 8), "receiver": [whole(8, 16)], "a": drawn(4, 8),
                         "b": drawn(8, 3), "x": whole(4, 8), "y": whole(8, 3)},
    "Contractions": lambda: {"a": drawn(2, 3, 4), "b": drawn(2, 4, 5), "noise": drawn(5),
                             "samples": drawn(2, 3, 4), "weights": drawn(5, 4)},
    "Products of other libraries' calls": lambda: {"model": abs, "x": drawn(3)},
    "Hermitian products": lambda: {"x": drawn(2, 3, 8), "voltages": whole(2, 3, 8)},
    "Systems of equations": lambda: {"r": np.eye(4) + 0j, "steering": drawn(4, 2)},
    "Counts and expectation values": lambda: {"state": np.eye(1, 2**20, dtype="complex64")[0]},
    "Plans": lambda: {"a": drawn(4, 8), "b": drawn(8, 3),
                      "batches": [(drawn(4, 8), drawn(8, 3), np.empty((4, 3), "complex64"))]},
    "Gradients, compiled code, graphs": lambda: {"a": tensor()},
}  # fmt: skip
"""Names that the text around a section's examples introduces, by section."""


def sections(page: str) -> list[tuple[str, str]]:
    """Return the titles of a page's sections that have examples, and these."""
    parts = re.split(r"^#+ ", (DOCS / page).read_text(), flags=re.MULTILINE)
    blocks = [(part, re.findall(r"```python\n(.*?)```", part, re.DOTALL)) for part in parts]
    return [(part.split("\n")[0], "".join(found)) for part, found in blocks if found]


@pytest.mark.parametrize(
    ("title", "code"), [*sections("python.md"), *sections("frameworks.md")],
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
