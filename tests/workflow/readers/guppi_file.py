"""GUPPI files for tests of readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

HEADER: dict[str, Any] = {
    "OBSFREQ": 1420.0, "OBSBW": -4.0, "OBSNCHAN": 4, "NPOL": 4, "NBITS": 8, "TBIN": 1e-6,
    "OVERLAP": 0, "PKTFMT": "1SFA", "PKTSIZE": 128, "STT_IMJD": 58132, "STT_SMJD": 51093,
    "STT_OFFS": 0.0, "FD_POLN": "LIN",
}  # fmt: skip
SAMPLES = 32


def parts(blocks: int, seed: int = 1, shape: tuple[int, ...] = (4, SAMPLES, 2)) -> Any:
    """Real and imaginary numbers (block, channel, time, polarization, 2) of 8 bits."""
    return np.random.default_rng(seed).integers(-128, 128, (blocks, *shape, 2), np.int8)


def cards(header: dict[str, Any]) -> bytes:
    """A header of cards of 80 bytes; a value of None is left out."""
    shown = {
        key: f"'{value:<8}'" if isinstance(value, str) else f"{value!s:>20}"
        for key, value in header.items()
        if value is not None
    }
    lines = [f"{key:<8}= {value} / of {key}".ljust(80) for key, value in shown.items()]
    return "".join([*lines, "END".ljust(80)]).encode("latin-1")


def write(
    path: Path, data: npt.NDArray[Any], first: int = 0, *, padded: bool = True, **header: Any
) -> None:
    """Write blocks (block, ...) of a recording, the first of them number ``first`` of it.

    DIRECTIO pads headers, and samples where they are ``padded``, by what a buffer held.
    """
    given = {**HEADER, "BLOCSIZE": data[0].nbytes, **header}
    packets = given.get("PIPERBLK") or data[0].nbytes // (given["PKTSIZE"] or 32)
    with path.open("wb") as file:
        for number, block in enumerate(data, first):
            head = cards({"PKTIDX": number * packets, **given})
            if given.get("DIRECTIO"):
                head += bytes(-len(head) % 512)
            file.write(head + block.tobytes())
            if given.get("DIRECTIO") and padded:
                file.write(b"\x81" * (-block.nbytes % 512))


def voltages(data: npt.NDArray[Any]) -> Any:
    """The samples (time, polarization, channel) of blocks (block, channel, time, polarization)."""
    values = data[..., 0] + 1j * data[..., 1]  # block, channel, time, polarization
    return values.transpose(0, 2, 3, 1).reshape(-1, values.shape[3], values.shape[1])


def case(path: Path, **more: Any) -> dict[str, Any]:
    """A transform of a recording's samples."""
    source = {"file": str(path), "format": "guppi", "samples": "voltages", **more}
    return {"kind": "dft", "axis": "time", "input": source}
