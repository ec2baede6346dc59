"""Registers and stack of the kernels of a cubin, read from the ELF file itself."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_NO_BITS, _SYMBOLS, _FUNCTION = 8, 2, 2
"""SHT_NOBITS, SHT_SYMTAB and STT_FUNC of ELF."""
_REGISTERS, _FRAME, _SIZED = 0x2F, 0x11, 4
"""EIATTR_REGCOUNT, EIATTR_FRAME_SIZE and EIFMT_SVAL of .nv.info: a symbol and a number."""


@dataclass(frozen=True)
class Section:
    """A section of an ELF file; ``link`` is the index of the section with its names."""

    name: str
    kind: int
    data: bytes
    link: int


def kernel_usage(cubin: bytes) -> dict[str, tuple[int, int]]:
    """Return the registers of a thread of each kernel, and the bytes of its stack.

    A thread's stack holds what it spills, too. An entry of ``.nv.info`` is its format, its
    attribute and the size of what follows, as ``cuobjdump -elf`` lists them.
    """
    every = sections(cubin)
    attributes = {
        (attribute, symbol): value
        for section in every
        if section.name == ".nv.info"
        for attribute, symbol, value in _entries(section.data)
    }
    return {
        name: (attributes[_REGISTERS, index], attributes.get((_FRAME, index), 0))
        for index, name in _functions(every)
        if (_REGISTERS, index) in attributes
    }


def sections(cubin: bytes) -> list[Section]:
    """Return the sections of a cubin, in order."""
    (offset,) = struct.unpack_from("<Q", cubin, 0x28)
    item, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQI", cubin, offset + i * item) for i in range(count)]
    titles = cubin[headers[names][4] :]
    return [
        Section(
            _text(titles, name), kind,
            b"" if kind == _NO_BITS else cubin[begin : begin + size], link,
        )
        for name, kind, _, _, begin, size, link in headers
    ]  # fmt: skip


def _functions(every: list[Section]) -> Iterator[tuple[int, str]]:
    """Yield the indices and names of functions in the table of symbols."""
    for section in every:
        if section.kind == _SYMBOLS:
            for index, (name, kind) in enumerate(struct.iter_unpack("<IB19x", section.data)):
                if kind & 15 == _FUNCTION:
                    yield index, _text(every[section.link].data, name)


def _entries(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield attribute, symbol and number of the entries that have both."""
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != _SIZED:
            continue
        if size == 8:
            yield (attribute, *struct.unpack_from("<II", data, at))
        at += size


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()
