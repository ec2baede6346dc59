"""Covariances of an array as an image needs them: square, of one feed, at known places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from argand.image.hermitian_check import require_hermitian

from workflow.arrays.antenna_places import (
    HOW_TO_PLACE,
    check_up,
    in_hz_or_m,
    lacking_places,
    refuse_geocentric,
)
from workflow.counted import listed
from workflow.data import PLACES, Array, Coordinate, Staged
from workflow.drawn import Stretched
from workflow.files.input_error import InputError
from workflow.inputs.agreement import check_agrees
from workflow.inputs.axes import Operand
from workflow.inputs.coordinates import NUMBERED
from workflow.readers.polarizations import POLARIZATIONS

COVARIANCES = Operand("covariances", ("time", "polarization", "frequency", "antenna", "column"))
"""The operand of images and of weights of beams."""
CROSSED = ("xy", "yx", "rl", "lr", "hv", "vh")
"""Polarizations whose visibilities are not power, in whatever case a file has them."""
STOKES = tuple("IQUV")
"""Names of Stokes parameters in capitals."""


def placed(found: Staged) -> Staged:
    """Return covariances with the places and names of antennas under their own names.

    In a product they stand along another axis, its inputs, and have the axis before their names.
    The antennas of its inputs take the place of the numbers of inputs that are selected.

    Raises InputError where steering weights are of antennas of other names.
    """
    renamed = {f"antenna_{name}": name for name in PLACES if name not in found.coordinates}
    there = {renamed.get(name, name): one for name, one in found.coordinates.items()}
    named, known = there.get("antenna_input_antenna"), there.get("antenna")
    if named is not None:
        if known is not None and known.long_name != NUMBERED.format("antenna"):
            check_agrees(COVARIANCES.name, "antenna", known, named)
        there["antenna"] = replace(named, long_name="antenna", axes=())
    return replace(found, coordinates=there)


def check_inputs(outline: Staged) -> None:
    """Raise InputError where rows and columns are not the same antennas in one polarization.

    Visibilities of another workload say along their inputs which antenna in which polarization each
    of them is; where nothing says it, nothing is refused.
    """
    there, shape = outline.coordinates, outline.operands["covariances"].shape
    for what in ("polarization", "antenna"):
        row = there.get(f"antenna_input_{what}")
        column = there.get(f"column_conjugated_input_{what}")
        if row is None or column is None:
            continue
        feeds = np.unique(row.values) if what == "polarization" else row.values[:1]
        if len(feeds) > 1:
            part = f'"0:{shape[3] // len(feeds)}"'
            if feeds.dtype.kind == "U":
                part = f"[{row.values[0]}]"
            raise InputError(
                f"input.select.covariances: the inputs are of {len(feeds)} polarizations, and an "
                "array's covariances are of one; take one, such as "
                f"{{input: {part}, conjugated_input: {part}}}"
            )
        _check_same(f"{what}s", row, column)
    if (row := there.get("antenna")) is None:
        return
    numbered = row.long_name == NUMBERED.format("antenna")
    column = there.get("column" if numbered else "antenna_2")  # the latter is of UVH5
    if column is not None and column.of("column") == ("column",):
        _check_same("antennas", row, column)


def _check_same(what: str, row: Coordinate, column: Coordinate) -> None:
    """Raise InputError where rows and columns are of other antennas or polarizations."""
    if np.array_equal(row.values, column.values):
        return
    if (one := row.values.size) != (other := column.values.size):
        raise InputError(
            f"input.select.covariances: rows and columns must be of the same {what}, got {one} "
            f"rows and {other} columns; select the same entries of both"
        )
    first = int(np.argmax(row.values != column.values))
    rows, columns = (listed(one.values[first:].tolist()) for one in (row, column))
    raise InputError(
        f"input.select.covariances: rows and columns must be of the same {what}, got {rows} and "
        f"{columns} from entry {first} on; select the same entries of both"
    )


def check_added(outline: Staged) -> None:
    """Raise InputError where polarizations that are added up are Stokes parameters.

    I is the power of both feeds; with Q, U or V the sum is that of nothing.
    """
    found = outline.coordinates.get("polarization")
    names = [] if found is None else [str(name) for name in found.values.tolist()]
    stokes = [name for name in names if name.upper() in STOKES]
    if stokes and len(names) > 1:
        raise InputError(
            f"sum: polarization must be of powers of feeds, such as xx and yy, got "
            f"{', '.join(names)}; leave it out, and each has an image, or take one by input.select"
        )


def checked_values(staged: Staged, *, silent: bool = False) -> Staged:
    """Return operands whose covariances are Hermitian, of antennas that all have power.

    A matrix of one triangle is not Hermitian, which solvers would not notice, since they read the
    lower triangle alone. Beams of least power would consist of an antenna without power, such as
    one that is flagged; images may have some (``silent``). Raises InputError; where covariances
    come in stretches, while these are read.
    """
    name = COVARIANCES.name
    drawn = staged.drawn.get(name)
    rows = COVARIANCES.axes.index("antenna")
    if not isinstance(drawn, Stretched) or drawn.axis >= rows:
        # A stretch along rows has some of a matrix that is too large for one.
        if silent and isinstance(drawn, Stretched):
            return staged  # argand.image looks at it, and it is not held here
        values = drawn.held() if isinstance(drawn, Stretched) else staged.operands[name]
        _refuse_not_hermitian(values)
        if not silent:
            _refuse_silent(staged, _powers(values).sum(axis=0))
        return staged

    def read() -> Iterator[tuple[int, Array]]:
        power = np.zeros(drawn.shape[1:-1])
        for start, values in drawn.read():
            _refuse_not_hermitian(values, start if drawn.axis == rows - 1 else 0)
            place = [slice(None)] * (power.ndim + 1)
            place[drawn.axis] = slice(start, start + values.shape[drawn.axis])
            power[tuple(place[1:])] += _powers(values).sum(axis=0)
            yield start, values
        if not silent:
            _refuse_silent(staged, power)

    return replace(staged, drawn={**staged.drawn, name: replace(drawn, read=read)})


def raised_for_mean(staged: Staged) -> Staged:
    """Return covariances whose mean over all times is that over the times at which each is not 0.

    Flagged values are 0, and would lessen a plain mean. So each value is multiplied by the number
    of times over the number of those at which its element is not 0.
    """
    name = COVARIANCES.name
    drawn = staged.drawn.get(name)
    if not isinstance(drawn, Stretched):
        values = staged.operands[name]
        factors = _factors(len(values), (values != 0).sum(axis=0), values)
        own = values if values.flags.writeable else None  # which may be on a disk
        raised = np.multiply(values, factors, out=own)
        return replace(staged, operands={**staged.operands, name: raised})
    known = np.zeros(drawn.shape[1:], np.int64)

    def place(start: int, values: Array) -> tuple[slice, ...]:
        """Return the part of ``known`` that a stretch is of; all of it where it is one of times."""
        before = max(0, drawn.axis - 1)
        part = slice(start, start + values.shape[drawn.axis]) if drawn.axis else slice(None)
        return (*[slice(None)] * before, part)

    for start, values in drawn.read():
        known[place(start, values)] += (values != 0).sum(axis=0)

    def read() -> Iterator[tuple[int, Array]]:
        for start, values in drawn.read():
            yield start, values * _factors(drawn.shape[0], known[place(start, values)], values)

    return replace(staged, drawn={**staged.drawn, name: replace(drawn, read=read)})


def _factors(times: int, known: Array, values: Array) -> Array:
    """Return the number of times over those that are known, in the type of parts of ``values``."""
    return np.asarray(times / np.maximum(known, 1), values.real.dtype)


def _powers(values: Array) -> Array:
    """Return the modulus of the diagonal of each matrix."""
    return np.asarray(np.abs(np.diagonal(values, axis1=-2, axis2=-1)))


def _refuse_silent(staged: Staged, power: Array) -> None:
    """Raise InputError for antennas of (polarization, frequency, antenna) without power.

    Where none has power, nothing is found, and the verification says so.
    """
    silent = (power == 0) & (power.max(axis=-1, keepdims=True, initial=0) > 0)
    numbers = np.flatnonzero(silent.any(axis=(0, 1)))
    if not len(numbers):
        return
    known = staged.coordinates.get("antenna")
    names = numbers if known is None else known.values[numbers]
    count = np.count_nonzero(silent.any(axis=-1))
    raise InputError(
        f"input.{COVARIANCES.name}: antennas {listed(names.tolist())} have no power in {count} of "
        f"{silent[..., 0].size} channels, and beams of least power would consist of them; take the "
        "others, or other channels, by input.select, along rows and columns"
    )


def _refuse_not_hermitian(values: Array, first: int = 0) -> None:
    """Raise InputError for covariances of channels from the ``first`` on."""
    try:
        require_hermitian(values, np)
    except ValueError as error:
        where = f"from channel {first} on, " if first else ""
        raise InputError(
            f"input.{COVARIANCES.name}: {where}{error}; where the file has one triangle, write "
            "both, and where an element is of the row's conjugate, its conjugate"
        ) from None


def check_covariances(outline: Staged, array: str | None) -> None:
    """Raise InputError where the operand is not a covariance of antennas whose places are known.

    ``array`` is what files of the input's format call it, for advice; None where they do not.
    """
    shape, there = outline.operands["covariances"].shape, outline.coordinates
    check_inputs(outline)
    if shape[3] != shape[4]:
        hint = f"; those of the file's format are `covariances: {array}`" if array else ""
        raise InputError(
            f"input.covariances must be square, got {shape[3]} antennas and {shape[4]} columns"
            f"{hint}"
        )
    if lacking := lacking_places(there):
        raise InputError(
            "input.covariances: directions need frequency, east and north of the antennas, but "
            f"there is no {' and no '.join(lacking)}, only {sorted(there)}; {HOW_TO_PLACE}"
        )
    for name in ("frequency", *PLACES):
        if name in there:
            in_hz_or_m(there, name)
    check_up(there)
    refuse_geocentric(there)
    polarizations = there.get("polarization")
    values = [] if polarizations is None else polarizations.values.tolist()
    names = [str(POLARIZATIONS.get(one, one)) for one in values]
    crossed = sorted({name for name in names if name.lower() in CROSSED})
    others = [number for number, name in enumerate(names) if name.lower() not in CROSSED]
    if crossed:
        hint = f"take those of one feed each, which are numbers {others} of {', '.join(names)}"
        if not others:
            hint = "the selection has none of one feed"
        raise InputError(
            f"input.select.covariances: polarization {' and '.join(crossed)} "
            f"{'is' if len(crossed) == 1 else 'are'} of two feeds and no power; {hint}"
        )
