"""Headers of GUPPI's blocks: cards of 80 bytes, as FITS has them, up to END.

They are read here and not by baseband, which takes NPOL 1 for half a polarization and antennas
(NANTS) for channels, cannot read past a block that is missing, and is under the GPL.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

CARD = 80
MAX_BYTES = 256_000
"""Bytes of a header: hpguppi has room for no more."""
_ALIGNED = 512
"""Headers and samples are padded to this where DIRECTIO says so."""
_MAX_VALUES = 1 << 20
"""Values of one sample, of all antennas, channels and polarizations."""
_BITS = (8, 16)
_HASHPIPE = ("NANTS", "PIPERBLK", "DIRECTIO")
"""Keys of recorders on hashpipe, as those of Breakthrough Listen; guppi_daq writes none of them."""

SAME = (
    "OBSNCHAN", "NANTS", "NPOL", "NBITS", "PKTFMT", "BLOCSIZE", "OVERLAP", "TBIN", "OBSFREQ",
    "OBSBW", "PKTSIZE", "PIPERBLK", "STT_IMJD", "STT_SMJD", "STT_OFFS", "SYNCTIME", "FD_POLN",
    "FD_HAND",
)  # fmt: skip
"""Keys that have one value in all blocks of a recording."""
DESCRIBING = (
    "TELESCOP",
    "FRONTEND",
    "BACKEND",
    "OBSERVER",
    "PROJID",
    "SRC_NAME",
    "RA_STR",
    "DEC_STR",
)
"""Keys that say what was observed; nothing is computed from them."""
ANTENNAS = tuple(f"ANTNMS{number:02d}" for number in range(64))
"""Keys of the names of antennas, several a card with commas between them."""
_DROPPED = ("DROPBLK", "NDROP", "NPKT")
"""Keys of how much of a block's packets is dropped: the part, or how many are and are not."""
KEYS = (*SAME, "PKTIDX", "PKTSTART", "DIRECTIO", *_DROPPED, *DESCRIBING, *ANTENNAS)
"""Keys that are read."""
_PADDED = {key.ljust(8).encode(): key for key in KEYS}
_WITHOUT_VALUE = (b" " * 8, b"COMMENT ", b"HISTORY ", b"CONTINUE")
Header = Mapping[str, str]


class HeaderError(ValueError):
    """A header that is malformed, or says what cannot be; the text follows the block's name."""


class SampleLayout(NamedTuple):
    """Layout of a block's samples: (antenna, channel, time, polarization, parts of a number)."""

    antennas: int
    channels: int
    polarizations: int
    bits: int
    is_complex: bool
    time_first: bool

    @property
    def values(self) -> int:
        """Real numbers of a sample."""
        return self.antennas * self.channels * self.polarizations * (1 + self.is_complex)

    @property
    def sample_bytes(self) -> int:
        """Bytes of a sample."""
        return self.values * self.bits // 8


@dataclass(frozen=True)
class Span:
    """Size and position of a block, from its header.

    ``overlap`` are the last samples, which the next block has too, ``packet`` is PKTIDX, and
    ``packets`` what it rises by to the next block; 0 where that is not said. ``dropped`` is the
    fraction of the block's packets that the recorder dropped; nothing says where they were.
    """

    data_bytes: int
    samples: int
    overlap: int
    packet: int
    packets: int
    dropped: float


def parsed(data: bytes) -> tuple[dict[str, str], int]:
    """Return `KEYS` of the header at the start of ``data``, and its bytes with their padding.

    Raises HeaderError where there is none.
    """
    found: dict[str, str] = {}
    for start in range(0, len(data), CARD):
        key = data[start : start + 8]
        if not key.isascii():
            raise HeaderError(f"has no header of text at its byte {start}")
        if key.rstrip() == b"END":
            size = start + CARD
            return found, size + padding(found, size)
        if name := _PADDED.get(key):
            card = data[start + 8 : start + CARD].decode("ascii", "replace")
            if card.startswith("="):
                found[name] = _value(card[1:])
        elif data[start + 8 : start + 9] != b"=" and key not in _WITHOUT_VALUE:
            break
    raise HeaderError(f"has no header of cards of {CARD} bytes that ends with END")


def padding(header: Header, size: int) -> int:
    """Return the bytes that a recorder writes behind ``size`` bytes of a header or of samples."""
    return -size % _ALIGNED if integer(header, "DIRECTIO", 0) else 0


def _value(text: str) -> str:
    """Return the value of a card, without its quotes and its comment."""
    text = text.strip()
    if text.startswith("'"):
        return text[1:].replace("''", "\0").split("'")[0].replace("\0", "'").strip()
    return text.split("/")[0].strip()


def number(header: Header, key: str, default: float | None = None) -> float:
    """Return a header's number; raises HeaderError where it is none, or not finite."""
    if key not in header and default is not None:
        return default
    try:
        found = float(header[key])
    except KeyError:
        raise HeaderError(f"lacks {key}") from None
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise HeaderError(f"must have a finite number as {key}, got {header[key]!r}")
    return found


def integer(header: Header, key: str, default: int | None = None, least: int = 0) -> int:
    """Return a header's whole number; raises HeaderError where it is none, or too small."""
    text = header.get(key, "")
    if text.isascii() and text.isdigit() and len(text) <= 19:
        found: float = int(text)
    else:
        found = number(header, key, default)
    if found != int(found) or not least <= found < 1 << 63:
        raise HeaderError(f"must have a whole number from {least} on as {key}, got {header[key]!r}")
    return int(found)


def layout_of(header: Header) -> SampleLayout:
    """Return the layout of the samples that follow a header; a header without one is a HeaderError.

    NPOL is "number of polarizations times 2" in Ellingson, "Notes on the GUPPI raw data format"
    (NRAO, 2013), so that 2 are the parts of one; of recorders whose headers have one of `_HASHPIPE`
    it is the number of polarizations, as in Breakthrough Listen's "RAW file format". In both 4 are
    the parts of two. A single channel has real samples unless TBIN is that of complex ones.
    """
    hashpipe = any(key in header for key in _HASHPIPE)
    channels, npol = integer(header, "OBSNCHAN", least=1), integer(header, "NPOL", 1, least=1)
    antennas, bits = integer(header, "NANTS", 1, least=1), integer(header, "NBITS", 8)
    if bits not in _BITS:
        raise HeaderError(f"must have samples of {_BITS[0]} or {_BITS[1]} bits (NBITS), got {bits}")
    if npol not in (1, 2, 4):
        raise HeaderError(f"must have an NPOL of 1, 2 or 4, got {npol}")
    if channels % antennas:
        raise HeaderError(
            f"must have as many channels for each of NANTS {antennas} antennas, got OBSNCHAN "
            f"{channels} of all"
        )
    is_complex = channels > 1 or hashpipe
    if not is_complex:
        cycles = number(header, "TBIN") * abs(number(header, "OBSBW", 0.0)) * 1e6
        is_complex = abs(cycles - 1) < 0.25  # 0.5 of real samples
    polarizations = npol if hashpipe or not is_complex else npol // 2
    if not is_complex and npol == 4:
        raise HeaderError("must have an NPOL of 1 or 2 where its one channel is of real samples")
    polarizations = min(2, max(1, polarizations))
    time_first = header.get("PKTFMT", "") == "SIMPLE"
    found = SampleLayout(
        antennas, channels // antennas, polarizations, bits, is_complex, time_first
    )
    if found.values > _MAX_VALUES:
        raise HeaderError(
            f"tells of {found.values} numbers in a sample, and may of {_MAX_VALUES} (OBSNCHAN, "
            "NPOL)"
        )
    if antennas > 1 and time_first:
        raise HeaderError("must not have PKTFMT SIMPLE of several antennas")
    return found


def span_of(header: Header, layout: SampleLayout) -> Span:
    """Return the size and position of a block. Raises HeaderError for a header without them."""
    size, overlap = integer(header, "BLOCSIZE", least=1), integer(header, "OVERLAP", 0)
    samples, rest = divmod(size, layout.sample_bytes)
    if rest or overlap >= samples:
        raise HeaderError(
            f"must have a BLOCSIZE of whole samples of {layout.sample_bytes} bytes, more than the "
            f"{overlap} of OVERLAP, got {size}"
        )
    if "PIPERBLK" in header:
        packets = integer(header, "PIPERBLK")
    else:
        packets, packet_bytes = 0, integer(header, "PKTSIZE", 0)
        fresh = (samples - overlap) * layout.sample_bytes
        if packet_bytes and fresh % packet_bytes == 0:
            packets = fresh // packet_bytes
    return Span(size, samples, overlap, integer(header, "PKTIDX"), packets, _dropped(header))


def _dropped(header: Header) -> float:
    """Return the part of a block's packets that is dropped, 0 where a header says nothing of it."""
    try:
        dropped = number(header, "NDROP", 0.0)
        part = dropped / max(1.0, dropped + number(header, "NPKT", 0.0))
        found = number(header, "DROPBLK", part)
    except HeaderError:
        return 0.0
    return min(1.0, max(0.0, found))
