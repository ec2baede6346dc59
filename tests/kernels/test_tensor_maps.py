"""Tensor maps of arrays of one form: kept by address, and moved where there are many."""

from __future__ import annotations

import ctypes

import pytest
from argand import cuda_tensor_map
from argand.cuda_tensor_map import MapsOfForm, TensorMap


class Described:
    """In place of the driver's: 128 bytes, of which the first eight are the address."""

    def __init__(self, address: int = 0) -> None:
        self.bytes = (ctypes.c_uint64 * 16)(address, *range(15))

    def getPtr(self) -> int:  # noqa: N802
        return ctypes.addressof(self.bytes)


class Driver:
    """As much of the driver as moves maps; it counts how often."""

    CUtensorMap = Described

    def __init__(self) -> None:
        self.moved = 0

    def cuTensorMapReplaceAddress(self, found: Described, address: int) -> tuple[int]:  # noqa: N802
        self.moved += 1
        found.bytes[0] = address
        return (0,)


def words(place: int) -> list[int]:
    """What lies at a map's place."""
    return list((ctypes.c_uint64 * 16).from_address(place))


def test_an_array_that_was_there_before_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, made = Driver(), []

    def make(address: int) -> TensorMap:
        made.append(address)
        return TensorMap(Described(address), address)

    monkeypatch.setattr(cuda_tensor_map, "_driver", lambda: driver)
    maps = MapsOfForm(make)
    addresses = range(16, 16 * 9, 16)  # as many as are kept
    places = [maps.at(address) for address in addresses]
    assert len(set(places)) == len(places)
    # One is described, the others are copies of it that were moved.
    assert (made, driver.moved) == ([16], len(places) - 1)
    for _ in range(2):
        assert [maps.at(address) for address in addresses] == places
        assert [words(place) for place in places] == [[a, *range(15)] for a in addresses]
    assert (made, driver.moved) == ([16], len(places) - 1)
    # One more takes the place of the first, which then is another's.
    assert maps.at(512) == places[0]
    assert words(places[0])[0] == 512
    assert maps.at(16) == places[1]
    assert words(places[1])[0] == 16
    assert maps.at(512) == places[0]
    assert (made, driver.moved) == ([16], len(places) + 1)
