"""Shards of a workload: equal stretches of one axis, each computed by jobs of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

_NAME = re.compile(r"(\d+)-of-(\d+)")


@dataclass(frozen=True)
class Shard:
    """One of ``count`` shards; ``index`` counts from 0, names from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        """Return ``02-of-16``: names sort as their shards."""
        return f"{self.index + 1:0{len(str(self.count))}}-of-{self.count}"

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return the shard of a name; raises ValueError for anything else."""
        found = _NAME.fullmatch(name)
        shard = cls(int(found[1]) - 1, int(found[2])) if found else None
        if shard is None or not 0 <= shard.index < shard.count or str(shard) != name:
            raise ValueError(f"a shard must be named like 02-of-16, got {name!r}")
        return shard

    def within(self, length: int) -> slice:
        """Return the shard's stretch of an axis: lengths differ by at most one."""
        return slice(self.index * length // self.count, (self.index + 1) * length // self.count)


def shards(count: int) -> tuple[Shard, ...]:
    """Return all of ``count`` shards."""
    return tuple(Shard(index, count) for index in range(count))


def split_part(part: str) -> tuple[str, Shard | None]:
    """Return a part's workload and shard: of ``beams/02-of-16``, or of ``beams`` and None."""
    name, _, shard = part.partition("/")
    return name, Shard.parse(shard) if shard else None


def choose_axis(splits: Sequence[str], lengths: Mapping[str, int], count: int) -> str:
    """Return the axis that is split: the first of ``splits`` with at least ``count`` entries.

    Raises ValueError, its text to go on after the key, where no axis is so long or there is none.
    """
    found = [axis for axis in splits if axis in lengths]
    for axis in found:
        if lengths[axis] >= count:
            return axis
    if not found:
        raise ValueError(f"must be 1, because this kind has no axis to split, got {count}")
    longest = max(lengths[axis] for axis in found)
    have = ", ".join(f"{axis} has {lengths[axis]}" for axis in found)
    raise ValueError(
        f"must be at most {longest}, the longest axis that can be split ({have}), got {count}"
    )
