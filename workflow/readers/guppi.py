"""Voltages of GUPPI recordings, of one file or a sequence of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import BinaryIO, ClassVar

import numpy as np

from workflow.data import MAX_CHECKED, Array, Coordinate, Product, blank
from workflow.files.file_sequence import recording
from workflow.files.input_error import InputError
from workflow.readers.base import Reader, check_sample_rate
from workflow.readers.guppi_blocks import Block, Recording, fill, opened, recording_of
from workflow.readers.guppi_header import ANTENNAS, DESCRIBING, HeaderError, integer, number
from workflow.readers.polarizations import CIRCULAR, LINEAR
from workflow.readers.voltages import centres_of, said_of_centres

_BAND = ("OBSFREQ", "OBSBW")
_MJD_0 = "1858-11-17"
_MAX_SECONDS = 86_400 * 200_000
"""Largest time in seconds after 1858, which is in the year 2406."""


class Guppi(Reader):
    """``voltages`` (time, antenna, polarization, frequency), of antennas where NANTS has several.

    They are complex, or real of one channel of real samples, and in two's complement unless the
    config says which number stands for 0.
    """

    names: ClassVar[tuple[str, ...]] = ("voltages",)

    @cached_property
    def _recording(self) -> Recording:
        return recording_of(recording(self.path, "guppi"), zeros=self.flagged == "zero")

    def header(self) -> Mapping[str, str]:
        """See `Reader.header`."""
        held = self._recording.header
        return {key: held[key] for key in DESCRIBING if key in held}

    def outline(self, name: str) -> Product:
        """See `Reader.outline`."""
        found = self._recording
        layout, header, samples = found.layout, found.header, found.samples
        try:
            step = number(header, "TBIN")
            if step <= 0:
                raise HeaderError(f"must have a TBIN above 0 s, got {step:g}")
            since = self._since(step)
        except HeaderError as error:
            raise InputError(f"input.file: the header of {found.files[0]} {error}") from None
        check_sample_rate(found.files[0], 1 / step)
        long = self.checked and samples > MAX_CHECKED
        times = blank((samples,), np.float64) if long else np.arange(samples) * step
        coordinates = {"time": Coordinate(times, "s", since, step=step)}
        axes = ["time", "antenna", "polarization", "frequency"]
        shape = [samples, layout.antennas, layout.polarizations, layout.channels]
        if layout.antennas == 1:
            del axes[1], shape[1]
        if all(key in header for key in _BAND):
            band = [header[key] for key in _BAND]
            centres = centres_of(band, layout.channels)
            if centres is None:
                self.faults["frequency"] = (
                    f"its header's {' and '.join(_BAND)} must be the finite middle and width of "
                    f"the band in MHz, got {band[0]} and {band[1]}"
                )
            else:
                said = said_of_centres(band, is_real=not layout.is_complex)
                coordinates["frequency"] = Coordinate(centres, "Hz", said)
        if layout.antennas > 1 and (names := self._antennas()):
            coordinates["antenna"] = Coordinate(np.array(names), "", "antenna")
        if feeds := self._feeds():
            coordinates["polarization"] = Coordinate(np.array(feeds), "", "polarization")
        kind = np.complex64 if layout.is_complex else np.float32
        return Product(name, blank(tuple(shape), kind), tuple(axes), coordinates, "voltages")

    def made_zero(self) -> str:
        """See `Reader.made_zero`."""
        found = self._recording
        there = int(np.sum(found.end - np.maximum(found.first, [0, *found.end[:-1]])))
        lost = found.samples - there
        return f"{lost} of {found.samples} times, which the recording lacks" if lost else ""

    def lost(self) -> str:
        """See `Reader.lost`."""
        parts = np.array([block.span.dropped for block in self._recording.blocks])
        if not parts.any():
            return ""
        return (
            f"{100 * parts.mean():.2g}% of the packets were dropped when it was recorded, in "
            f"{np.count_nonzero(parts)} of {len(parts)} blocks"
        )

    def _since(self, step: float) -> str:
        """Return the origin of times, the first sample; without a date where the header has none.

        Recorders with SYNCTIME, seconds since 1970, count packets from there; others from STT_IMJD,
        STT_SMJD and STT_OFFS, where the packet was PKTSTART or, where that is not said, 0.
        """
        header, first = self._recording.header, self._recording.blocks[0].span
        packet, packets, fraction = first.packet, self._recording.packets, 0.0
        hashpipe = "PIPERBLK" in header
        if packet and not packets:
            return "time"
        if hashpipe and "SYNCTIME" in header:
            begin, second = np.datetime64("1970-01-01", "s"), integer(header, "SYNCTIME")
        elif "STT_IMJD" in header:
            begin, day = np.datetime64(_MJD_0, "s"), integer(header, "STT_IMJD")
            second = 86_400 * day + integer(header, "STT_SMJD", 0)
            fraction = number(header, "STT_OFFS", 0.0)
            packet -= integer(header, "PKTSTART", 0) if hashpipe else 0
        else:
            return "time"
        passed = Fraction(packet * (first.samples - first.overlap), packets or 1) * Fraction(step)
        nanoseconds = round(10**9 * (Fraction(fraction) + passed))
        second, nanoseconds = second + nanoseconds // 10**9, nanoseconds % 10**9
        if not 0 <= second < _MAX_SECONDS:
            raise HeaderError(f"tells of a first sample {second} s after {begin}")
        return f"time since {begin + np.timedelta64(second, 's')}.{nanoseconds:09d} UTC"

    def _antennas(self) -> list[str]:
        """Return the names of antennas; none where the header has not one for each."""
        header = self._recording.header
        said = [name.strip() for key in ANTENNAS for name in header.get(key, "").split(",")]
        names = [name for name in said if name]
        once = len(names) == len(set(names)) == self._recording.layout.antennas
        return names if once else []

    def _feeds(self) -> tuple[str, ...]:
        """Return the two of FD_POLN, as PSRFITS orders them: turned where FD_HAND is below 0."""
        header = self._recording.header
        basis = header.get("FD_POLN", "").upper()
        feeds = {"LIN": LINEAR, "CIRC": CIRCULAR[::-1]}.get(basis[:4], ())
        if len(feeds) != self._recording.layout.polarizations:
            return ()
        return feeds[::-1] if header.get("FD_HAND", "").startswith("-") else feeds

    def read(self, name: str, part: Sequence[slice]) -> Array:
        """See `Reader.read`."""
        found = self._recording
        layout = found.layout
        begin, stop = part[0].start, max(part[0].start, part[0].stop)
        antennas = part[1] if layout.antennas > 1 else slice(0, 1)
        channels, polarizations = part[-1], part[-2]
        chosen = [range(n)[one] for n, one in (
            (layout.antennas, antennas), (layout.channels, channels)
        )]  # fmt: skip
        shape = (stop - begin, len(chosen[0]), layout.polarizations, len(chosen[1]))
        result = np.zeros(shape, np.complex64 if layout.is_complex else np.float32)
        where = np.searchsorted(found.end, begin, side="right")
        done = begin
        for file, blocks in groupby(range(where, len(found.blocks)), self._file_of):
            if done >= stop:
                break
            with opened(found, file) as raw:
                for one in blocks:
                    place = int(found.first[one])
                    first, last = max(done, place), min(stop, int(found.end[one]))
                    if first >= last:
                        break
                    result[first - begin : last - begin] = self._block(
                        raw, found.blocks[one], (first - place, last - place), chosen
                    )
                    done = last
        result = result[:, :, polarizations]
        return result if layout.antennas > 1 else result[:, 0]

    def _file_of(self, block: int) -> int:
        return self._recording.blocks[block].file

    def _block(
        self, raw: BinaryIO, block: Block, inside: tuple[int, int], chosen: Sequence[range]
    ) -> Array:
        """Return (time, antenna, polarization, channel) of a block's samples ``inside``."""
        layout, (first, last) = self._recording.layout, inside
        antennas, channels = chosen
        unsigned = self.zero_level is not None
        kind = np.dtype(f"<{'u' if unsigned else 'i'}{layout.bits // 8}")
        each = layout.polarizations * (1 + layout.is_complex)
        item = each * kind.itemsize
        if layout.time_first:
            data = np.empty((last - first, layout.channels, each), kind)
            pieces = [(first * layout.channels * item, data)]
        else:
            data = np.empty((len(antennas), len(channels), last - first, each), kind)
            row = block.span.samples * item
            pieces = [
                ((antenna * layout.channels + channel) * row + first * item, data[a, c])
                for a, antenna in enumerate(antennas)
                for c, channel in enumerate(channels)
            ]
        for place, room in pieces:
            fill(raw, block.start + place, room)
        values = data.astype(np.float32)
        if self.zero_level is not None:
            values -= np.float32(self.zero_level)
        if layout.is_complex:
            values = values.view(np.complex64)
        values = values.reshape(*data.shape[:-1], layout.polarizations)
        if layout.time_first:
            return values[:, channels.start : channels.stop].swapaxes(1, 2)[:, None]
        return values.transpose(2, 0, 3, 1)
