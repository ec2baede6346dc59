"""A dataset of the user's file by its path, and the files that hold its values.

An HDF5 file may name any file that its reader can open: by an external link, as the source of a
virtual dataset, as raw storage. None is opened unless the config says so, and HDF5 is never handed
a path that leads through a link which has not been checked.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from workflow.files.virtual_spaces import is_unlimited

_LISTED = 20
"""Most datasets of a file that a message names."""
_MAX_LINKS = 16
"""Followed one after another, as HDF5 itself does."""
_SWITCH = "allow it with input.external: true"


class DatasetError(ValueError):
    """A dataset that is not there or must not be read; the text continues after the key."""


def find_dataset(file: h5py.File, path: str, *, external: bool = False) -> h5py.Dataset:
    """Return the dataset at a path.

    Args:
        file: the open file.
        path: the path from the root group; soft links within the file are followed.
        external: whether its values may lie in other files.

    Raises:
        DatasetError: no dataset there, links in a circle, an HDF5 null dataspace, values in other
            files without ``external`` or with one of them missing.
    """
    found, _ = _walk(file, path, external)
    return _checked(found, file, path, external)


def files_of(file: h5py.File, path: str) -> list[Path]:
    """Return the files beside ``file`` on which the values of the dataset at a path depend.

    Those that external links lead through, and `other_files` of the dataset. Raises DatasetError as
    `find_dataset` does.
    """
    found, through = _walk(file, path, external=True)
    files = [*through, *other_files(_checked(found, file, path, external=True))]
    return [one for one in dict.fromkeys(files) if one != Path(file.filename)]


def _checked(found: h5py.HLObject, file: h5py.File, path: str, external: bool) -> h5py.Dataset:
    if not isinstance(found, h5py.Dataset):
        kind = "group" if isinstance(found, h5py.Group) else "named type"
        raise DatasetError(f"{path} is a {kind}, not a dataset{_choices(file, path)}")
    if (found.is_virtual or found.external) and not external:
        raise DatasetError(
            f"the data of {path} lie in other files than {file.filename}; copy them into one file, "
            f"or {_SWITCH}"
        )
    other_files(found)
    if found.shape is None:
        raise DatasetError(f"{path} has no elements and no axes (a null dataspace)")
    return found


def _walk(file: h5py.File, path: str, external: bool) -> tuple[h5py.HLObject, list[Path]]:
    """Return the object at a path, each link checked before it is followed, and files passed."""
    place, components, followed, linked_to = file["/"], _components(path), 0, ""
    through: list[Path] = []
    while components:
        name = components.pop(0).encode()
        if not isinstance(place, h5py.Group) or not place.id.links.exists(name):
            through_link = f": it is a link to {linked_to}, where nothing is" if linked_to else ""
            raise DatasetError(
                f"{file.filename} has no dataset {path}{through_link}{_choices(file, path)}"
            )
        kind = place.id.links.get_info(name).type
        followed += kind != h5py.h5l.TYPE_HARD
        if followed > _MAX_LINKS:
            raise DatasetError(f"{path} of {file.filename} leads through links in a circle")
        if kind == h5py.h5l.TYPE_SOFT:
            target = place.id.links.get_val(name).decode()
            place = place.file["/"] if target.startswith("/") else place
            components, linked_to = _components(target) + components, target
        elif kind == h5py.h5l.TYPE_EXTERNAL:
            linked, target = (text.decode() for text in place.id.links.get_val(name))
            beside = Path(place.file.filename).parent / linked
            text = f"{path} of {file.filename} is a link to {linked}"
            if not external:
                raise DatasetError(f"{text}; name that file instead, or {_SWITCH}")
            try:
                place = place[name]
            except (KeyError, OSError) as error:
                raise DatasetError(f"{text}, which cannot be opened ({error})") from error
            through += _led_through(beside, target)
            held = Path(place.file.filename)
            if not any(held.samefile(known) for known in through):
                through.append(held)
        else:
            place = place[name]
    return place, through


def _led_through(path: Path, target: str) -> list[Path]:
    """Return the file that an external link names, and those of links that HDF5 followed from it.

    None where HDF5 found the file elsewhere (``HDF5_EXT_PREFIX``, the current folder).
    """
    if not path.is_file():
        return []
    with h5py.File(path, "r") as held:
        return [path, *_walk(held, target, external=True)[1]]


def _components(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]


def other_files(dataset: h5py.Dataset) -> list[Path]:
    """Return the files beside the dataset's own that hold its values, each there and long enough.

    Raises DatasetError where one is missing: HDF5 would read fill values instead.
    """
    folder = Path(dataset.file.filename).parent
    files = []
    for name, offset, size in dataset.external or ():
        # Relative raw storage is searched for where the process runs, as HDF5 does.
        _check_raw(dataset, Path(name), offset, size)
        files.append(Path(name))
    for source in dataset.virtual_sources() if dataset.is_virtual else ():
        path = folder / source.file_name
        if source.file_name == ".":
            _check_source(dataset, dataset.file, source)
            continue
        try:
            with h5py.File(path, "r") as held:
                _check_source(dataset, held, source)
        except OSError as error:
            raise DatasetError(
                f"{dataset.name}: its source {path} cannot be read ({error})"
            ) from error
        files.append(path)
    return list(dict.fromkeys(files))


def _check_raw(dataset: h5py.Dataset, path: Path, offset: int, size: int) -> None:
    length = path.stat().st_size if path.is_file() else -1
    needed = offset + (size if size != h5py.h5f.UNLIMITED else 0)
    if length < needed:
        raise DatasetError(
            f"{dataset.name}: its storage {path} must be a file of at least {needed} bytes, "
            f"got {f'{length} bytes' if length >= 0 else 'none'}"
        )


def _check_source(dataset: h5py.Dataset, held: h5py.File, source: Any) -> None:
    """Check a source of a virtual dataset: there, with own values, and as large as is read."""
    rule = f"{dataset.name}: its source {source.dset_name} of {held.filename} must"
    found, _ = _walk(held, source.dset_name, external=False)
    if isinstance(found, h5py.Dataset) and (found.is_virtual or found.external):
        raise DatasetError(f"{rule} hold its values itself, they lie in other files; copy them")
    found = _checked(found, held, source.dset_name, external=False)
    if source.src_space.get_select_type() == h5py.h5s.SEL_ALL:
        # The file does not say how large the source was.
        needed = source.vspace.get_select_npoints()
        if found.size != needed:
            raise DatasetError(f"{rule} have {needed} elements, got shape {found.shape}")
        return
    if is_unlimited(source.src_space):  # it has as many entries as the source
        return
    last = tuple(int(end) for end in source.src_space.get_select_bounds()[1])
    if len(last) != found.ndim or any(np.greater_equal(last, found.shape)):
        raise DatasetError(f"{rule} reach {last}, got shape {found.shape}")


def _choices(file: h5py.File, path: str) -> str:
    """Return the names that the file has instead, the nearest first."""
    names: list[str] = []
    file.visititems(
        lambda name, item: names.append(f"/{name}") if isinstance(item, h5py.Dataset) else None
    )
    near = difflib.get_close_matches("/" + path.lstrip("/"), names, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{hint} (it has: {', '.join(names[:_LISTED]) or 'no dataset'}{more})"
