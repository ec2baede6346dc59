"""The command: attacks that share a time, the table, and the slips."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import benchmarks.attack
from benchmarks.attack.api import FUNCTIONS as CALLS
from benchmarks.attack.api import fuzz
from benchmarks.attack.campaign import Attack, Campaign
from benchmarks.attack.damage import JOBS, damage
from benchmarks.attack.disks import full, read_only
from benchmarks.attack.interruptions import kills, two_runs
from benchmarks.harness.tables import Table, parser

ROOT = Path(__file__).resolve().parents[2]
_WHAT = "bits, words, pages, chunks, cuts of"
ATTACKS = (
    *(
        Attack(f"api-{name}", f"25 calls of {name}, nasty data", fuzz(name), 1, 10)
        for name in CALLS
    ),
    *(Attack(f"damage-{files}", f"{_WHAT} {files}", damage(files), 1.5, 10, 400) for files in JOBS),
    Attack("two-runs", "a second run beside the first", two_runs, 3, 1, 5),
    Attack("read-only-disk", "a read-only disk, then a writable one", read_only, 3, 1, 8),
    Attack("full-disk", "less room than the study takes, then enough", full, 4),
    Attack("kills", "kill -9 at any time, then the same command", kills, 6),
)
"""Attacks in the order in which they are made, those that run whole studies last."""


def main(argv: Sequence[str] | None = None) -> int:
    """Attack; the exit status is 1 where something slipped."""
    arguments = _parser().parse_args(argv)
    chosen = [attack for attack in ATTACKS if not arguments.only or attack.name in arguments.only]
    if arguments.number is not None and len(chosen) != 1:
        raise SystemExit("--number is of one attack: name it by --only")
    table = Table(arguments.csv)
    campaign = Campaign(chosen, arguments.seed, ROOT)
    print(f"{'attack':18} {'tries':>6} {'held':>6} {'slipped':>8}  what", flush=True)
    for row in campaign.rows(60 * arguments.minutes, arguments.number):
        print(f"{row.attack:18} {row.tries:6} {row.held:6} {row.slipped:8}  {row.what}", flush=True)
        table.add([asdict(row)])
    for line in (*campaign.notes, *campaign.slips):
        print(line)
    return int(bool(campaign.slips))


def _parser() -> argparse.ArgumentParser:
    found = parser(benchmarks.attack.__doc__)
    names = [attack.name for attack in ATTACKS]
    found.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--number", type=int, help="the one attempt of this number")
    found.add_argument("--minutes", type=float, default=10.0, help="of all attacks together")
    return found


if __name__ == "__main__":
    sys.exit(main())
