"""An attack, the loop that attempts it until its time is up, and the table of counts."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.attack.studies import Ground

_SHOWN = 8
"""Slips of an attack that are printed in words."""


class SlippedError(Exception):
    """The fault that Argand let through, in a sentence."""


class NotTriedError(Exception):
    """Why an attack cannot be made on this machine."""


@dataclass(frozen=True)
class Attempt:
    """The random numbers and the folder of one attempt, and all that attempts share."""

    number: int
    rng: np.random.Generator
    folder: Path
    ground: Ground


def require(held: bool, slip: str) -> None:
    """Raise SlippedError unless something held."""
    if not held:
        raise SlippedError(slip)


@dataclass(frozen=True)
class Attack:
    """An attack: ``make`` returns where Argand holds and raises SlippedError where it does not.

    ``share`` is its part of the campaign's time beside those of others. ``least`` attempts are made
    whatever time they take; after ``most`` the rest of the time goes to those that follow.
    """

    name: str
    what: str
    make: Callable[[Attempt], None]
    share: float
    least: int = 1
    most: int = 1_000_000


@dataclass(frozen=True)
class AttackRow:
    """The counts of one attack."""

    attack: str
    what: str
    tries: int
    held: int
    slipped: int


@dataclass
class Campaign:
    """Attempts of some attacks within a time, and the slips in the order in which they came."""

    attacks: Sequence[Attack]
    seed: int
    root: Path
    slips: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def rows(self, seconds: float, number: int | None = None) -> Iterator[AttackRow]:
        """Yield a row for each attack, when it is over; of one attempt if ``number`` names it."""
        end = time.monotonic() + seconds
        with tempfile.TemporaryDirectory(prefix="argand-attack-") as folder:
            ground = Ground(self.root, Path(folder))
            for index, attack in enumerate(self.attacks):
                left = sum(later.share for later in self.attacks[index:])
                now = time.monotonic()
                until = now + max(0.0, end - now) * attack.share / left
                yield self._row(attack, ground, until, number)

    def _row(self, attack: Attack, ground: Ground, until: float, number: int | None) -> AttackRow:
        tries = 0
        slipped: list[int] = []
        numbers = range(attack.most) if number is None else [number]
        for tried in numbers:
            if tries >= attack.least and time.monotonic() > until:
                break
            try:
                slip = self._attempt(attack, ground, tried)
            except NotTriedError as reason:
                self.notes.append(f"{attack.name}: not tried further: {reason}")
                break
            tries += 1
            if slip:
                slipped.append(tried)
                if len(slipped) <= _SHOWN:
                    self.slips.append(f"{attack.name}: {slip}\n    {self._again(attack)} {tried}")
            self._progress(attack, tries, slipped)
        if slipped[_SHOWN:]:
            more = ", ".join(map(str, slipped[_SHOWN:]))
            self.slips.append(f"{attack.name}: more slips\n    {self._again(attack)} N of {more}")
        self._progress(attack, tries, slipped, last=True)
        return AttackRow(attack.name, attack.what, tries, tries - len(slipped), len(slipped))

    def _again(self, attack: Attack) -> str:
        """Return the command that makes an attempt again, without its number."""
        return f"python -m benchmarks.attack --only {attack.name} --seed {self.seed} --number"

    def _attempt(self, attack: Attack, ground: Ground, number: int) -> str:
        """Return the fault that slipped; empty where the attempt held."""
        rng = np.random.default_rng([self.seed, number, *attack.name.encode()])
        folder = ground.folder / f"attempt-{number}"
        folder.mkdir()
        try:
            attack.make(Attempt(number, rng, folder, ground))
        except SlippedError as error:
            return " ".join(str(error).split())[:500]
        except NotTriedError:
            raise
        except Exception:  # what an attack does not expect is for a person to look at
            return "the attempt itself failed: " + " | ".join(
                traceback.format_exc().split("\n")[-4:]
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return ""

    def _progress(
        self, attack: Attack, tries: int, slipped: Sequence[int], *, last: bool = False
    ) -> None:
        if sys.stderr.isatty():
            line = f"{attack.name}: {tries} tries, {len(slipped)} slipped"
            sys.stderr.write(f"\r{line:60}" + ("\r" if last else ""))
            sys.stderr.flush()
