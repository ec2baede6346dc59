"""Voltages of DADA and VDIF files, by the package baseband.

It is under the GPL, so nothing here depends on it: it is imported where a study names such a format
and the user has installed it.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import traceback
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from workflow.data import FALLING, MAX_CHECKED, UPPER_EDGE, Array, Coordinate, Product, blank
from workflow.files.input_error import InputError
from workflow.readers.base import Reader, check_sample_rate
from workflow.readers.dada_header import check_samples, check_size, fields_of, start_in
from workflow.storage.files import absent, is_file

AXES = {"nchan": "frequency", "channel": "frequency", "npol": "polarization", "nthread": "thread"}
"""baseband's names of the axes of a sample; others keep theirs."""
_OF_A_FRAME = ("invalid_data", "seconds", "frame_nr", "thread_id", "sync_pattern")
"""Fields of a VDIF header that differ from frame to frame, or are the same in every file."""
DIGITS = 9
"""Digits of the first sample's second: astropy rounds to ms, and samples come every few ns."""


class Voltages(Reader):
    """``voltages`` (time, ...), real where the file's samples are."""

    names: ClassVar[tuple[str, ...]] = ("voltages",)
    module: ClassVar[str]
    band: ClassVar[tuple[str, ...]] = ()
    """Keys of a header for the middle of the band and its width, in MHz; below 0 it is reversed."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if not is_file(path):
            raise InputError(f"input.file: {absent(path)}")
        try:
            self._package = importlib.import_module(f"baseband.{self.module}")
        except ImportError as error:
            raise InputError(
                f"input.format: {self.module} needs the package baseband ({error}); install it "
                "beside Argand: pip install baseband"
            ) from error
        self._options: dict[str, Any] = {}

    def outline(self, name: str) -> Product:
        """See `Reader.outline`."""
        with self._opened() as stream:
            shape = tuple(int(n) for n in stream.shape)
            rate = float(stream.sample_rate.to_value("Hz"))
            fields = getattr(stream.sample_shape, "_fields", ())
            kind = np.complex64 if stream.complex_data else np.float32
            bits = int(stream.bps) * (2 if stream.complex_data else 1)
            start = self._start(stream)
            band = [stream.header0.get(key) for key in self.band]
            self._turned(stream)
            threads = stream.fh_raw.get_thread_ids() if "nthread" in fields else []
        check_sample_rate(self.path, rate)
        held, size = math.prod(shape[1:]) * bits, self.path.stat().st_size
        if shape[0] < 0 or held <= 0 or shape[0] * held > 8 * size:
            raise InputError(
                f"input.file: {self.path} is damaged or lacks frames: it tells of samples of shape "
                f"{shape} in {bits} bits each, and has {size} bytes"
            )
        named = [AXES.get(field, field) for field in fields]
        if len(named) != len(shape) - 1:
            named = [f"axis_{number}" for number in range(1, len(shape))]
        long = self.checked and shape[0] > MAX_CHECKED
        times = blank(shape[:1], np.float64) if long else np.arange(shape[0]) / rate
        found = {"time": Coordinate(times, "s", f"time since {start} UTC", step=1 / rate)}
        if threads != list(range(len(threads))):
            number = "number of the thread"
            found["thread_id"] = Coordinate(np.array(threads), "", number, ("thread",))
        if band and None not in band and "frequency" in named:
            centres = centres_of(band, shape[1 + named.index("frequency")])
            if centres is None:
                self.faults["frequency"] = (
                    f"its header's {' and '.join(self.band)} must be the finite middle and width "
                    f"of the band in MHz, got {band[0]!r} and {band[1]!r}"
                )
            else:
                said = said_of_centres(band, is_real=kind == np.float32)
                found["frequency"] = Coordinate(centres, "Hz", said)
        return Product(name, blank(shape, kind), ("time", *named), found, "voltages")

    def read(self, name: str, part: Sequence[slice]) -> Array:
        """See `Reader.read`."""
        with self._opened() as stream:
            stream.seek(part[0].start)
            found = np.asarray(stream.read(part[0].stop - part[0].start))
            if self._turned(stream):
                found = found.reshape(len(found), *found.shape[:0:-1]).swapaxes(1, 2)
            kind = np.complex64 if stream.complex_data else np.float32
            bits = int(stream.bps)
        found = np.array(found[(slice(None), *part[1:])], kind, order="C")
        if self.zero_level is not None:
            parts = found.view(np.float32)
            parts += np.where(parts < 0, np.float32(1 << bits), np.float32(0))
            parts -= np.float32(self.zero_level)
        return found

    def _start(self, stream: Any) -> str:
        """Return the date of the first sample in ISO 8601 and UTC."""
        start = stream.start_time.copy()
        start.precision = DIGITS
        return str(start.isot)

    def _turned(self, stream: Any) -> bool:
        """Return whether the last two axes lie in the file in the other order than in baseband.

        Raises InputError where time is not the slowest.
        """
        return False

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        """Yield a stream of samples, none of its axes of length 1 left out."""
        try:
            opened = self._package.open
            with (
                self.path.open("rb") as raw,
                opened(raw, "rs", squeeze=False, **self._options) as stream,
            ):
                yield stream
        except InputError:
            raise
        except Exception as error:  # baseband and astropy raise of many kinds for a damaged file
            said = str(error).replace("`sample_rate`", "`input.sample_rate_hz`")
            if isinstance(error, KeyError) and said.strip("'").isupper():
                said = f"its header lacks {said}"
            said = said or f"in {traceback.extract_tb(error.__traceback__)[-1].line}"
            raise InputError(
                f"input.file: {self.path} cannot be read as {self.module} "
                f"({type(error).__name__}: {said})"
            ) from error


def centres_of(band: Sequence[Any], channels: int) -> Array | None:
    """Return the centres of a band's channels in Hz, None where a header's values say none."""
    try:
        middle_mhz, width_mhz = map(float, band)
    except (TypeError, ValueError):
        return None
    if not math.isfinite(middle_mhz + width_mhz) or (width_mhz == 0 and channels > 1):
        return None
    places = (np.arange(channels) + 0.5) / channels - 0.5
    return np.asarray(1e6 * (middle_mhz + width_mhz * places))


def said_of_centres(band: Sequence[Any], *, is_real: bool) -> str:
    """Return the meaning of a channel's frequency, of a band whose middle and width are known.

    A width below 0 says that frequencies fall within channels as from channel to channel, as
    rawspec, which makes spectra of GUPPI recordings, and DSPSR have it.
    """
    if float(band[1]) < 0:
        return f"centre of the channel, {UPPER_EDGE if is_real else FALLING}"
    edge = ", whose lower edge is frequency 0 of the samples" if is_real else ""
    return f"centre of the channel{edge}"


class Dada(Voltages):
    """PSRDADA's files."""

    module: ClassVar[str] = "dada"
    band: ClassVar[tuple[str, ...]] = ("FREQ", "BW")

    @cached_property
    def _fields(self) -> Mapping[str, str]:
        return fields_of(self.path)

    def header(self) -> Mapping[str, str]:
        """See `Reader.header`."""
        return self._fields

    def outline(self, name: str) -> Product:
        """See `Reader.outline`; a header that would move the samples is refused before."""
        check_samples(self._fields, self.path)
        found = super().outline(name)
        each = math.prod(found.data.shape[1:]) * (1 + (found.data.dtype.kind == "c"))
        check_size(self._fields, self.path, found.data.shape[0] * each, each)
        return found

    def _start(self, stream: Any) -> str:
        """See `Voltages._start`."""
        return start_in(self._fields) or super()._start(stream)

    def _turned(self, stream: Any) -> bool:
        """See `Voltages._turned`: baseband reads TPF, and passes over ``ORDER``."""
        order = str(stream.header0.get("ORDER", "TPF")).upper()
        lengths = dict(zip("PF", stream.shape[1:], strict=True))
        kept = "".join(axis for axis in order if lengths.get(axis) != 1)
        if kept not in ("T", "TP", "TF", "TPF", "TFP"):
            raise InputError(
                f"input.file: {self.path}: its header's ORDER must have time first, as TFP or TPF, "
                f"or be of one channel and polarization, got {order!r} of {lengths['P']} "
                f"polarizations and {lengths['F']} channels"
            )
        return kept == "TFP"


class Vdif(Voltages):
    """VLBI Data Interchange Format; short files may not tell their sample rate.

    baseband has one value for samples of frames that say that they are invalid, and of those that
    the file lacks. It is NaN here, which no sample is.
    """

    module: ClassVar[str] = "vdif"

    def __init__(self, path: Path, sample_rate_hz: float | None = None) -> None:
        super().__init__(path)
        self._options["fill_value"] = math.nan
        if sample_rate_hz is None:
            return
        if self._tells_rate():
            raise InputError("input.sample_rate_hz: the file says it already; leave it out")
        units = importlib.import_module("astropy.units")
        self._options["sample_rate"] = sample_rate_hz * units.Hz

    def header(self) -> Mapping[str, Any]:
        """See `Reader.header`: of the first frame, without what belongs to that frame alone."""
        with self._opened() as stream:
            first = stream.header0
            said = {key: first[key] for key in first.keys() if key not in _OF_A_FRAME}  # noqa: SIM118
            if hasattr(first, "station"):  # the two letters that the number may stand for
                said["station_id"] = first.station
            return {key: value for key, value in said.items() if not key.startswith("_")}

    def read(self, name: str, part: Sequence[slice]) -> Array:
        """See `Reader.read`; raises InputError for lost samples, unless they are to be 0."""
        found = super().read(name, part)
        lost = np.isnan(found)
        self.values += lost.size
        self.bad += int(np.count_nonzero(lost))
        if not lost.any():
            return found
        if self.flagged != "zero":
            first = part[0].start + int(np.argmax(lost.reshape(len(lost), -1).any(axis=1)))
            raise InputError(
                f"input.file: {self.path}: frames are invalid or missing, the first of them at "
                f"time {first}: {np.count_nonzero(lost)} of the {found.size} values of times "
                f"{part[0].start} to {part[0].stop - 1} that are selected; `flagged: zero` in the "
                "input makes them 0"
            )
        found[lost] = 0
        return found

    def _tells_rate(self) -> bool:
        try:
            with self._opened():
                return True
        except InputError:
            return False
