"""Tensor maps of arrays of one form: described once, then moved, by hand where it is known how."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
from argand.runtime.launch import tensor_map as cuda_tensor_map
from argand.runtime.launch.tensor_map import WORDS, MovingMap, TensorMap, TensorMapError


class Described:
    """In place of the driver's: 128 bytes, of which the first eight are the address."""

    def __init__(self, address: int = 0) -> None:
        self.bytes = (ctypes.c_uint64 * WORDS)(address, *range(1, WORDS))

    def getPtr(self) -> int:  # noqa: N802
        return ctypes.addressof(self.bytes)


Write = Callable[[Described, int], int]


class Driver:
    """As much of the driver as moves maps, by ``write``; it counts how often."""

    def __init__(self, write: Write) -> None:
        self.moved = 0
        self._write = write

    def cuTensorMapReplaceAddress(self, found: Described, address: int) -> tuple[Error]:  # noqa: N802
        self.moved += 1
        return (Error(self._write(found, address)),)


class Error(int):
    """The driver's answer."""

    name = "CUDA_ERROR"


def first_word(found: Described, address: int) -> int:
    found.bytes[0] = address
    return 0


def two_words(found: Described, address: int) -> int:
    """Another form, in which part of the address is kept elsewhere too."""
    found.bytes[0], found.bytes[5] = address, 5 + (address >> 40)
    return 0


def no_high_addresses(found: Described, address: int) -> int:
    return 1 if address >> 46 else first_word(found, address)


def moving(monkeypatch: pytest.MonkeyPatch, write: Write) -> tuple[MovingMap, Driver, list[int]]:
    driver, made = Driver(write), []

    def make(address: int) -> TensorMap:
        made.append(address)
        found = Described()
        write(found, address)
        return TensorMap(found, address)

    monkeypatch.setattr(cuda_tensor_map, "driver_bindings", lambda: driver)
    words = memoryview(bytearray(8 * WORDS)).cast("Q")
    return MovingMap(make, words), driver, made


ADDRESSES = (16, 1 << 40, 48, 16, (1 << 45) + 512)


@pytest.mark.parametrize("write", [first_word, two_words, no_high_addresses])
def test_a_moved_map_is_what_the_driver_describes(
    monkeypatch: pytest.MonkeyPatch, write: Write
) -> None:
    one, driver, made = moving(monkeypatch, write)
    for address in ADDRESSES:
        one.move(address)
        expected = Described()
        write(expected, address)
        assert list(one.words) == list(expected.bytes)
    assert made == [16]
    assert one.by_word == (write is first_word)
    before = driver.moved
    one.move(ADDRESSES[-1])  # it is there
    assert driver.moved == before


def test_where_the_address_is_a_word_launches_write_it_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, _, _ = moving(monkeypatch, first_word)
    one.move(16)
    assert one.by_word
    one.words[0] = 512
    assert list(one.words) == list(Described(512).bytes)


def test_an_address_that_the_driver_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    one, _, _ = moving(monkeypatch, no_high_addresses)
    one.move(16)
    with pytest.raises(TensorMapError, match="0x400000000010"):
        one.move((1 << 46) + 16)
