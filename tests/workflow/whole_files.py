"""Files of a study read whole, as tests compare them; the steps read them in pieces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from workflow.data import Staged
from workflow.shards import Shard
from workflow.storage.runs import Result, open_run
from workflow.storage.staged import Splits, open_staged


def read_staged(path: Path, splits: Splits | None = None, shard: Shard | None = None) -> Staged:
    """Everything that `open_staged` opens."""
    with open_staged(path, splits, shard) as staged:
        return staged.read()


def read_result(path: Path, implementation: str, precision: str) -> Result:
    """One result of a run file with its data, where it has some."""
    with open_run(path) as run:
        result = run.result(implementation, precision)
        return replace(result, data=run.read(result) if run.outline(result) is not None else None)
