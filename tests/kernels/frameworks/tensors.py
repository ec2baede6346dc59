"""Tensors of random numbers for tests, and how far results may be off."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")


def drawn(*shape: int, device: str = "cpu", dtype: Any = torch.complex64, seed: int = 7) -> Any:
    made = torch.Generator().manual_seed(seed)
    kind = torch.complex128 if dtype.is_complex else torch.float64
    return torch.randn(*shape, dtype=kind, generator=made).to(dtype).to(device)


drawn_double = partial(drawn, dtype=torch.complex128)
"""The numbers that a difference quotient needs."""


def close(found: Any, expected: Any, rtol: float = 3e-6) -> None:
    assert found.device == expected.device
    assert found.shape == expected.shape
    error = torch.linalg.vector_norm(found.to(expected.dtype) - expected)
    assert error <= rtol * torch.linalg.vector_norm(expected)
