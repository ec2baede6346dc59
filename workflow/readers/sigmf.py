"""Samples of SigMF recordings: a file of numbers, and one of JSON that says what they are.

By the specification, version 1.2 (sigmf.org). It is read here, since it takes no more than this,
and because the package sigmf reads whatever path a recording names.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from workflow.config.formats import FORMATS
from workflow.data import MAX_CHECKED, SELECTED, TUNED, Array, Coordinate, Product, blank
from workflow.files.input_error import InputError
from workflow.readers.base import Reader, check_sample_rate
from workflow.readers.sigmf_captures import WHOLE, fault_in, is_whole
from workflow.storage.files import absent, is_file

META, DATA = FORMATS["sigmf"].beside
_TYPE = re.compile(r"([cr])(f32|f64|i32|i16|i8|u32|u16|u8)(_le|_be)?")
_DATE = re.compile(r"[-0-9T:.+Z]{8,40}")
_MAX_BYTES = 16 << 20
"""Bytes of the JSON: its annotations may be many."""
_MAX_CHANNELS = 1 << 16
TOO_DEEP = "nested too deep to be kept"
"""Stands in a certificate in the place of such a value."""
_OTHER_LAYOUTS = ("core:dataset", "core:trailing_bytes", "core:metadata_only")
"""Keys of recordings whose samples lie otherwise."""


class SigMF(Reader):
    """``samples`` (time, receiver), of one receiver (time), complex or real as they are.

    Receivers are the format's channels, which have one time and one frequency, as antennas do.
    Integers are as they are stored, unsigned ones less half of their range, or less the config's
    ``zero_level``. The frequency that was tuned to is that of frequency 0 of complex samples.
    """

    names: ClassVar[tuple[str, ...]] = ("samples",)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if path.suffix not in (META, DATA):
            raise InputError(
                f"input.file: must be the {META} or the {DATA} of a SigMF recording, got {path}; "
                "`tar xf` takes these out of an archive"
            )
        self._meta, self._data = path.with_suffix(META), path.with_suffix(DATA)
        for one in (self._meta, self._data):
            if not is_file(one):
                raise InputError(f"input.file: {absent(one)}")

    def header(self) -> Mapping[str, Any]:
        """See `Reader.header`: the global object and the first capture, nested values as JSON.

        The capture is ``capture``, or ``captures[0]`` beside a key of the user's own of that name.
        """
        said = dict(self._global)
        if self._first:
            said["captures[0]" if "capture" in said else "capture"] = self._first
        return {key: _flat(value) for key, value in said.items()}

    def outline(self, name: str) -> Product:
        """See `Reader.outline`."""
        kind, channels, samples = self._layout
        found = self._times(samples)
        if "core:frequency" in self._first:
            tuned = np.array([self._number(self._first, "core:frequency")])
            own = f"{SELECTED}frequency"
            found[own] = Coordinate(
                tuned, "Hz", TUNED if self._is_complex else "centre frequency of the band", (own,)
            )
        if self.zero_level is not None and kind.kind == "f":
            raise InputError(f"input.zero_level: must be of integers, got {kind.name} samples")
        shape = (samples, channels)[: 1 + (channels > 1)]
        held = np.dtype(
            np.result_type(kind, np.float32, np.complex64 if self._is_complex else "f4")
        )
        return Product(name, blank(shape, held), ("time", "receiver")[: len(shape)], found, name)

    def _times(self, samples: int) -> dict[str, Coordinate]:
        """Return the times of samples; none where the recording does not say them, which is said.

        The specification has no need of a sample rate.
        """
        if self._global.get("core:sample_rate") is None:
            self.faults["time"] = "its global object has no core:sample_rate"
            return {}
        rate = self._number(self._global, "core:sample_rate", above=0.0)
        check_sample_rate(self._meta, rate)
        if fault := fault_in(self._captures, self._skipped, rate):
            self.faults["time"] = fault
            return {}
        start = int(self._first.get("core:sample_start", self._skipped)) - self._skipped
        date = self._first.get("core:datetime")
        dated = isinstance(date, str) and _DATE.fullmatch(date)
        long = self.checked and samples > MAX_CHECKED
        times = blank((samples,), np.float64) if long else (np.arange(samples) - start) / rate
        said = f"time since {date}" if dated else "time"
        return {"time": Coordinate(times, "s", said, step=1 / rate)}

    def read(self, name: str, part: Sequence[slice]) -> Array:
        """See `Reader.read`."""
        kind, channels, _ = self._layout
        each = channels * (1 + self._is_complex)
        first, stop = part[0].start, max(part[0].start, part[0].stop)
        count, offset = (stop - first) * each, self._offset + first * each * kind.itemsize
        try:
            stored = np.fromfile(self._data, kind, count, offset=offset)
        except OSError as error:
            raise InputError(f"input.file: {self._data} cannot be read ({error})") from error
        if len(stored) != count:
            raise InputError(f"input.file: {self._data} became shorter while it was read")
        values = stored.astype(np.result_type(kind, np.float32))
        level = self.zero_level
        if level is None and kind.kind == "u":
            level = float(1 << 8 * kind.itemsize - 1)
        if level is not None:
            values -= level
        if self._is_complex:
            values = values.view(np.result_type(values, np.complex64))
        values = values.reshape(stop - first, channels)
        return values[:, part[1]] if channels > 1 else values[:, 0]

    @cached_property
    def _content(self) -> Mapping[str, Any]:
        try:
            with self._meta.open("rb") as file:
                small = self._meta.stat().st_size <= _MAX_BYTES
                found = json.loads(file.read()) if small else None
        except (OSError, ValueError, RecursionError) as error:
            raise self._wrong(f"is no JSON ({error})") from error
        if not isinstance(found, dict) or not isinstance(found.get("global"), dict):
            raise self._wrong(f"must be a JSON object with `global`, of at most {_MAX_BYTES} bytes")
        return found

    @property
    def _global(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._content["global"]
        return found

    @cached_property
    def _captures(self) -> Sequence[Mapping[str, Any]]:
        """The captures; raises InputError where one is not a further part of the first."""
        captures = self._content.get("captures", [])
        if not isinstance(captures, list) or not all(isinstance(one, dict) for one in captures):
            raise self._wrong("must have a list of objects as `captures`")
        for one in captures:
            for key in WHOLE:
                if not is_whole(value := one.get(key, 0)):
                    raise self._wrong(f"must have a whole number from 0 on as {key}, got {value!r}")
        first = captures[0] if captures else {}
        header = first.get("core:header_bytes")
        if header and first.get("core:sample_start", 0) > self._skipped:
            raise self._wrong(
                f"has core:header_bytes {header} before sample "
                f"{first['core:sample_start']!r}, and only those before the file's first sample "
                "are passed over; write what is behind them as a recording of its own"
            )
        for one in captures[1:]:
            where = f"from sample {one.get('core:sample_start')!r} on"
            tuned = first.get("core:frequency")
            if one.get("core:frequency", tuned) != tuned:
                raise self._wrong(
                    f"has captures of core:frequency {tuned!r} and, {where}, "
                    f"{one['core:frequency']!r}; an input is of one, so write each as a recording "
                    "of its own"
                )
            if one.get("core:header_bytes"):
                raise self._wrong(
                    f"has core:header_bytes {one['core:header_bytes']} before samples, {where}, "
                    "and those of the first capture alone are passed over; write each capture as a "
                    "recording of its own"
                )
        return [
            {key: int(value) if key in WHOLE else value for key, value in one.items()}
            for one in captures
        ]

    @property
    def _first(self) -> Mapping[str, Any]:
        return self._captures[0] if self._captures else {}

    @property
    def _skipped(self) -> int:
        """The number that the file's first sample has in captures (``core:offset``)."""
        offset = self._global.get("core:offset", 0)
        if not is_whole(offset):
            raise self._wrong(f"must have a whole number from 0 on as core:offset, got {offset!r}")
        return int(offset)

    @property
    def _offset(self) -> int:
        return int(self._first.get("core:header_bytes", 0))

    @cached_property
    def _is_complex(self) -> bool:
        return str(self._global.get("core:datatype", "")).startswith("c")

    @cached_property
    def _layout(self) -> tuple[np.dtype[Any], int, int]:
        """The type of a number in the file, channels, and samples of each; raises InputError."""
        said = self._global.get("core:datatype")
        match = _TYPE.fullmatch(said) if isinstance(said, str) else None
        if match is None or (match[3] is None) != match[2].endswith("8"):
            raise self._wrong(f"must have a core:datatype such as cf32_le or ci16_le, got {said!r}")
        for key in _OTHER_LAYOUTS:
            if self._global.get(key):
                raise self._wrong(f"has {key}, and samples in {DATA} alone are read")
        channels = self._global.get("core:num_channels", 1)
        if not is_whole(channels) or not 1 <= (channels := int(channels)) <= _MAX_CHANNELS:
            raise self._wrong(
                f"must have from 1 to {_MAX_CHANNELS} channels as core:num_channels, got "
                f"{channels!r}"
            )
        order = ">" if match[3] == "_be" else "<"
        kind = np.dtype(f"{order}{match[2][0]}{int(match[2][1:]) // 8}")
        size = self._data.stat().st_size - self._offset
        samples, rest = divmod(size, kind.itemsize * channels * (1 + self._is_complex))
        if rest or samples < 1:
            raise InputError(
                f"input.file: {self._data} must have whole samples of {channels} channels of "
                f"{said}, got {size} bytes"
            )
        return kind, channels, samples

    def _number(self, held: Mapping[str, Any], key: str, above: float = -math.inf) -> float:
        value = held.get(key)
        known = isinstance(value, int | float) and not isinstance(value, bool)
        try:
            found = float(value) if known else math.nan  # type: ignore[arg-type]
        except OverflowError:
            found = math.nan
        if not math.isfinite(found) or found <= above:
            raise self._wrong(f"must have a finite number as {key}, got {value!r:.60}")
        return found

    def _wrong(self, text: str) -> InputError:
        return InputError(f"input.file: {self._meta} {text}")


def _flat(value: Any) -> Any:
    """Return a nested value as JSON, which says where it is deeper than can be written."""
    if not isinstance(value, dict | list):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return TOO_DEEP
