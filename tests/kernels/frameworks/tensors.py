"""Tensors of random numbers for tests, and how far results may be off."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")


def drawn(*shape: int, device: str, dtype: Any = None) -> Any:
    made = torch.Generator().manual_seed(7)
    x = torch.randn(*shape, dtype=torch.complex128, generator=made)
    return x.to(dtype or torch.complex64).to(device)


def close(found: Any, expected: Any, rtol: float = 3e-6) -> None:
    assert found.device == expected.device
    assert found.shape == expected.shape
    error = torch.linalg.vector_norm(found.to(expected.dtype) - expected)
    assert error <= rtol * torch.linalg.vector_norm(expected)
