"""Scattering parameters of a network in a Touchstone file, by the package scikit-rf."""

from __future__ import annotations

import codecs
import importlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from workflow.data import Array, Coordinate, Product, blank
from workflow.files.input_error import InputError
from workflow.readers.base import Reader
from workflow.storage.files import absent, is_file
from workflow.storage.memory import in_words

MAX_BYTES = 64 << 20
"""Bytes of a file: it is text, and read whole."""
_HEADER_BYTES = 1 << 20
"""Bytes of a file in which its header is searched for."""
_MODULE = "skrf.io.touchstone"
_DAMAGE = (
    OSError,
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    ArithmeticError,
    RuntimeError,
)
"""Errors that the package raises for a damaged file, depending on where it stumbles."""


class Touchstone(Reader):
    """``scattering`` (frequency, port, incident): out of a port, for a wave into the incident one.

    Frequencies are in Hz, whatever the file's unit is. The number of ports follows from the
    file's suffix, as in .s2p, or stands in a file of version 2.
    """

    names: ClassVar[tuple[str, ...]] = ("scattering",)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if not is_file(path):
            raise InputError(f"input.file: {absent(path)}")
        if (size := path.stat().st_size) > MAX_BYTES:
            raise InputError(
                f"input.file: {path} has {in_words(size)}; {in_words(MAX_BYTES)} of Touchstone "
                "are allowed"
            )
        try:
            self._package = importlib.import_module(_MODULE)
        except ImportError as error:
            raise InputError(
                f"input.format: touchstone needs the package scikit-rf ({error}); install it "
                "beside Argand: pip install scikit-rf"
            ) from error

    @cached_property
    def _network(self) -> tuple[Array, Array]:
        """(frequencies,) in Hz and (frequencies, ports, ports)."""
        self._check_parameter()
        try:
            frequency, found = self._package.Touchstone(str(self.path)).get_sparameter_arrays()
            frequency = np.asarray(frequency, np.float64)
            found = np.asarray(found, np.complex128)
        except _DAMAGE as error:
            raise InputError(
                f"input.file: {self.path} cannot be read as Touchstone "
                f"({type(error).__name__}: {error})"
            ) from error
        ports = found.shape[-1] if found.ndim == 3 else 0
        if not found.size or found.shape != (len(frequency), ports, ports):
            raise InputError(
                f"input.file: {self.path} must have a square matrix for each of its frequencies, "
                f"got {found.shape} for {frequency.shape}"
            )
        if not np.all(np.isfinite(frequency)):
            raise InputError(f"input.file: {self.path}: its frequencies must be finite")
        return frequency, found

    def _check_parameter(self) -> None:
        """Raise InputError for parameters that the package makes wrong scattering parameters of.

        Version 1 has Y, G and H relative to the reference impedance, and scikit-rf 2.2.0 multiplies
        all of them by it, as is right of Z alone.
        """
        said = self.header()
        kinds = {*said.get("options", "").upper().split()} & {"Y", "G", "H"}
        if kinds and "version" not in {key.lower() for key in said}:
            raise InputError(
                f"input.file: {self.path} must have S or Z parameters, or be of version 2, got "
                f"{kinds.pop()} parameters of version 1, whose reference impedance scikit-rf "
                "applies wrongly; write S parameters"
            )

    def header(self) -> Mapping[str, str]:
        """See `Reader.header`: comments, options and keywords that stand before the numbers.

        ``options`` may be ``GHZ S RI R 50``: the reference impedance is what the values are of.
        Values of keywords go on over lines in version 2 alone; in version 1 the numbers follow.
        """
        found: dict[str, list[str]] = {}
        keyword, is_version_2 = "", False
        for text in map(str.strip, self._first_text().splitlines()):
            if text.startswith("!"):
                found.setdefault("comments", []).append(text[1:].strip())
            elif text.startswith("#"):
                found.setdefault("options", [text[1:].partition("!")[0].strip()])
            elif text.startswith("[") and (split := text[1:].partition("]"))[1]:
                keyword = split[0].strip()
                if keyword.lower() == "network data":
                    break
                is_version_2 |= keyword.lower() == "version"
                found[keyword] = [split[2].partition("!")[0].strip()]
            elif text and keyword and is_version_2:  # a further line of its value
                found[keyword].append(text.partition("!")[0].strip())
            elif text:
                break
        return {key: "\n".join(lines) for key, lines in found.items() if any(lines)}

    def _first_text(self) -> str:
        """Return the beginning of the file in the encoding that the package takes it for."""
        try:
            with self.path.open("rb") as file:
                content = file.read(_HEADER_BYTES)
        except OSError as error:
            raise InputError(f"input.file: {self.path} cannot be read ({error})") from error
        try:
            return codecs.getincrementaldecoder("utf-8-sig")().decode(content)
        except UnicodeDecodeError:
            return content.decode("iso-8859-1")

    def outline(self, name: str) -> Product:
        """See `Reader.outline`."""
        frequency, found = self._network
        ports, what = self._ports(found.shape[-1])
        coordinates = {
            "frequency": Coordinate(frequency, "Hz", "frequency"),
            "port": Coordinate(ports, "", f"{what} that a wave leaves by"),
            "incident": Coordinate(ports, "", f"{what} that a wave enters by"),
        }
        data = blank(found.shape, found.dtype)
        return Product(name, data, ("frequency", "port", "incident"), coordinates, name)

    def _ports(self, count: int) -> tuple[Array, str]:
        """Return the numbers of ports, or what `Mixed-Mode Order` has in their places, and a name.

        The package has the differential mode of two ports, as ``D2,3``, in the place of the lower
        one, and their common mode in that of the other; ``S4`` is a port by itself. Raises
        InputError for an order that does not name each port once.
        """
        keys = {key.lower(): key for key in self.header()}
        if "mixed-mode order" not in keys:
            return np.arange(1, count + 1), "number of the port"
        modes = self.header()[keys["mixed-mode order"]].upper().split()
        named: dict[int, str] = {}
        for mode in modes:
            pair = sorted(int(one) for one in mode[1:].split(",") if one.isdigit())
            if len(pair) == 1 + (mode[0] in "DC") and mode[0] in "SDC":
                named[pair[mode[0] == "C"]] = mode
        if sorted(named) != list(range(1, count + 1)) or len(modes) != count:
            raise InputError(
                f"input.file: {self.path} must have each port, or the modes of two, once as "
                f"[Mixed-Mode Order], as D1,2 C1,2 S3 of three, got {' '.join(modes)!r:.60}"
            )
        return np.array([named[port] for port in sorted(named)]), "port or mode"

    def read(self, name: str, part: Sequence[slice]) -> Array:
        """See `Reader.read`."""
        return np.asarray(self._network[1][tuple(part)])
