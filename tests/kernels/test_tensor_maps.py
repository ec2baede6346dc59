"""Tensor maps of arrays of one form: kept by address, and moved where there are many."""

from __future__ import annotations

from typing import Any

import pytest
from argand import cuda_tensor_map
from argand.cuda_tensor_map import MapsOfForm, TensorMap


class Described:
    """In place of the driver's: where it lies, and what it describes."""

    def __init__(self, place: int) -> None:
        self.place = place

    def getPtr(self) -> int:  # noqa: N802
        return self.place


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(place, address) of what is described anew or moved, in order."""
    found: list[tuple[int, int]] = []

    def move(self: Any, address: int) -> None:
        found.append((self.place, address))

    monkeypatch.setattr(cuda_tensor_map.TensorMap, "move", move)
    return found


def test_an_array_that_was_there_before_costs_nothing(made: list[tuple[int, int]]) -> None:
    def make(address: int) -> TensorMap:
        made.append((1000 + address, address))
        return TensorMap(Described(1000 + address), address)

    maps = MapsOfForm(make)
    addresses = range(16, 16 * 9, 16)  # as many as are kept
    assert [maps.at(address) for address in addresses] == [1000 + a for a in addresses]
    assert [maps.at(address) for address in addresses] == [1000 + a for a in addresses]
    assert made == [(1000 + a, a) for a in addresses]
    # One more takes the place of the first, which then is another's.
    assert maps.at(512) == 1016
    assert made[-1] == (1016, 512)
    assert maps.at(16) == 1032
    assert made[-1] == (1032, 16)
    assert maps.at(512) == 1016
    assert len(made) == 10
