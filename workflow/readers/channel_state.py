"""Wi-Fi channel state in the log of the Linux 802.11n CSI Tool for Intel 5300 cards.

The layout is that of the tool's own reader (Halperin, Hu, Sheth and Wetherall, "Tool release:
gathering 802.11n traces with channel state information", 2011). It is read here and not by a
package: the one that is kept, csiread, copies records of any length onto a stack of 1024 bytes, so
a file may have it do anything.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np

from workflow.data import Array, Coordinate, Product, blank
from workflow.files.input_error import InputError
from workflow.files.units import OF_CARRIER
from workflow.readers.base import Reader
from workflow.storage.files import absent, is_file

_CHANNEL_STATE = 0xBB
"""The code of a record that holds a packet's channel state; others are passed over."""
_HEADER = np.dtype(
    {
        "names": ("clock", "receivers", "transmitters", "antennas", "bytes", "rate"),
        "formats": ("<u4", "u1", "u1", "u1", "<u2", "<u2"),
        "offsets": (0, 8, 9, 15, 16, 18),
        "itemsize": 20,
    }
)
"""Fields used of such a record's header: microseconds of the card's clock, numbers of chains, the
antenna of each receiving chain in two bits, bytes of the matrices."""
_MAX_CHAINS = 3
_SUBCARRIERS = 30
_WIDE = 0x800
"""The bit of the rate that says that a packet took 40 MHz."""
_ANTENNAS = "ABC"
"""Names of the card's antennas, whose numbers are 1 to 3."""
_SPACING_HZ = 312_500.0
"""Between neighbouring subcarriers of 802.11n."""
_PLACES = {
    False: (*range(-28, 0, 2), -1, *range(1, 28, 2), 28),
    True: (*range(-58, 0, 4), *range(2, 59, 4)),
}
"""The subcarriers that are reported at 20 and at 40 MHz (IEEE 802.11n-2009, table 7-25f)."""


@dataclass(frozen=True)
class _Packets:
    """The places of a file's packets, and what all of them have in common."""

    starts: Array
    clock: Array
    order: Array
    antennas: tuple[int, ...]
    receivers: int
    transmitters: int
    wide: bool

    @property
    def size(self) -> int:
        """Bytes of a packet's header and matrices."""
        return _HEADER.itemsize + _payload(self.receivers, self.transmitters)


class ChannelState(Reader):
    """``channel`` (time, frequency, receiver, transmitter), relative to the card's own reference.

    Times are those of the card's clock, which may be uneven; frequencies are from the carrier,
    which the file does not tell. Receivers stand in the order of the card's antennas.
    """

    names: ClassVar[tuple[str, ...]] = ("channel",)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if not is_file(path):
            raise InputError(f"input.file: {absent(path)}")

    def outline(self, name: str) -> Product:
        """See `Reader.outline`."""
        found = self._packets
        hertz = _SPACING_HZ * np.array(_PLACES[found.wide])
        coordinates = {
            "time": Coordinate(_seconds(found.clock), "s", "time since the first packet"),
            "frequency": Coordinate(hertz, "Hz", f"frequency {OF_CARRIER}"),
            "receiver": Coordinate(np.array(found.antennas), "", "antenna of the card"),
            "transmitter": Coordinate(np.arange(1, found.transmitters + 1), "", "spatial stream"),
        }
        shape = (len(found.starts), _SUBCARRIERS, found.receivers, found.transmitters)
        return Product(
            name, blank(shape, np.dtype(np.complex64)), tuple(coordinates), coordinates, name
        )

    def read(self, name: str, part: Sequence[slice]) -> Array:
        """See `Reader.read`."""
        found = self._packets
        starts, order = found.starts[part[0]], found.order[part[0]]
        if not len(starts):
            return np.zeros((0, *(one.stop - one.start for one in part[1:])), np.complex64)
        first = int(starts[0])
        with self.path.open("rb") as file:
            file.seek(first)
            data = np.frombuffer(file.read(int(starts[-1]) + found.size - first), np.uint8)
        if len(data) != starts[-1] + found.size - first:
            raise InputError(f"input.file: {self.path} became shorter while it was read")
        payload = data[
            (starts - first + _HEADER.itemsize)[:, None] + np.arange(found.size - _HEADER.itemsize)
        ]
        matrices = _matrices(payload, found.receivers, found.transmitters)
        matrices = np.take_along_axis(matrices, order[:, None, :, None], axis=2)
        return np.ascontiguousarray(matrices[(slice(None), *part[1:])])

    @cached_property
    def _packets(self) -> _Packets:
        starts, headers = array("q"), bytearray()
        with self.path.open("rb") as file:
            for start, header in self._records(file):
                starts.append(start)
                headers += header
        if not starts:
            raise InputError(
                f"input.file: {self.path} has no channel state of an Intel 5300 (no record of "
                f"code {_CHANNEL_STATE:#x})"
            )
        fields = np.frombuffer(headers, _HEADER)
        one = {name: self._common(fields[name], name) for name in ("receivers", "transmitters")}
        wide = self._common(fields["rate"] & _WIDE != 0, "width of the channel (40 MHz or not)")
        antennas = (fields["antennas"][:, None] >> np.arange(0, 2 * one["receivers"], 2)) & 3
        order = np.argsort(antennas, axis=1)
        ordered = np.take_along_axis(antennas, order, axis=1)
        if np.any(ordered[:, 1:] == ordered[:, :-1]) or np.any(ordered >= _MAX_CHAINS):
            raise InputError(f"input.file: {self.path} names an antenna twice, or one of no card")
        each = ["".join(_ANTENNAS[number] for number in packet) for packet in ordered.tolist()]
        letters = self._common(np.array(each), "receiving antennas")
        numbers = tuple(_ANTENNAS.index(letter) + 1 for letter in letters)
        return _Packets(
            np.array(starts, np.int64), fields["clock"], order, numbers, **one, wide=bool(wide)
        )

    def _common(self, values: Array, what: str) -> Any:
        """Return the value that all packets have; raises InputError where they differ."""
        if np.any(values != values[0]):
            place = int(np.argmax(values != values[0]))
            raise InputError(
                f"input.file: {self.path}: packets must have the same {what}, got {values[0]} "
                f"and, in packet {place + 1}, {values[place]}; each kind needs a file of its own"
            )
        return values[0].item()

    def _records(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        """Yield where the header of each packet starts, and the header."""
        end = os.fstat(file.fileno()).st_size
        place = 0
        while place < end:
            file.seek(place)
            head = file.read(3)
            length = int.from_bytes(head[:2], "big")
            if len(head) < 3 or length < 1 or place + 2 + length > end:
                raise InputError(
                    f"input.file: {self.path} ends within a record, or is not a CSI Tool log: "
                    f"the record at byte {place} is said to have {length} bytes, "
                    f"{max(0, end - place - 2)} are left"
                )
            if head[2] == _CHANNEL_STATE:
                yield place + 3, self._header(file.read(_HEADER.itemsize), length - 1, place)
            place += 2 + length

    def _header(self, header: bytes, length: int, place: int) -> bytes:
        """Return the header itself; raises InputError where its record cannot hold what it says."""
        if len(header) == _HEADER.itemsize <= length:
            (fields,) = np.frombuffer(header, _HEADER)
            receivers, transmitters = int(fields["receivers"]), int(fields["transmitters"])
            known = 1 <= receivers <= _MAX_CHAINS and 1 <= transmitters <= _MAX_CHAINS
            needed = _payload(receivers, transmitters)
            if known and fields["bytes"] == needed == length - _HEADER.itemsize:
                return header
        raise InputError(
            f"input.file: {self.path}: the packet at byte {place} is damaged: its {length} bytes "
            "do not hold the matrices that its header tells of"
        )


def _payload(receivers: int, transmitters: int) -> int:
    """Return the bytes of a packet's matrices: three bits before each, of eight bits each part."""
    bits = _SUBCARRIERS * (3 + 16 * receivers * transmitters)
    return -(-bits // 8)


def _matrices(payload: Array, receivers: int, transmitters: int) -> Array:
    """Return (packets, subcarriers, receivers, transmitters), from the bytes of each packet."""
    chains = receivers * transmitters
    before = 3 * np.arange(1, _SUBCARRIERS + 1)[:, None, None]
    bits = before + 8 * np.arange(_SUBCARRIERS * chains * 2).reshape(_SUBCARRIERS, chains, 2)
    low, shift = bits // 8, bits % 8
    parts = payload[:, low] >> shift | payload[:, low + 1].astype(np.uint16) << 8 - shift
    signed = parts.astype(np.uint8).view(np.int8)
    found = signed[..., 0] + np.complex64(1j) * signed[..., 1]
    return np.asarray(found.reshape(-1, _SUBCARRIERS, receivers, transmitters))


def _seconds(clock: Array) -> Array:
    """Return seconds since the first packet, of a 32-bit clock that passes 0 every 72 minutes."""
    steps = np.diff(clock).view(np.int32)  # of uint32, so modulo 2^32
    return np.concatenate([[0], np.cumsum(steps, dtype=np.int64)]) / 1e6
