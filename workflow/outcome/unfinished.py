"""Tables after a run that failed: the workloads that are done, and why the others are not.

Snakemake keeps going where a job fails, but never starts a job with an input missing, and the
tables need the records of every workload. So the end of a failed run writes them from what there
is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from workflow.accuracy.grading import read_growth
from workflow.figures.accuracy import draw_accuracy
from workflow.figures.study import draw_limits
from workflow.figures.sweeps import draw_sweep
from workflow.implementation import OURS
from workflow.jobs.progress import Failure
from workflow.outcome.answering import AnswerFigures, AnswerFiles, write_answers
from workflow.records import Record, read_all_records, read_records
from workflow.shards import split_part
from workflow.study import Study
from workflow.tables.study import write_accuracy, write_performance, write_shards

FAILED = "failed"
"""The verdict in the rows of a workload that has no records."""


@dataclass(frozen=True)
class Files:
    """The files of a study's results, as its rules name them.

    Attributes:
        records, product, picture: the files of one workload or shard; a name takes the place of
            ``{}``.
        tables: the files of the rules tabulate and tabulate_shards, by their names there.
        limits, accuracy: the figures of the rule draw_study.
        sweeps: the figures of the rule draw_sweep, by the name of the swept workload.
        answer: the files of the rule answer, by their names there.
        growth: the records of a study that grades; empty for another.
        logs: the folder of the jobs' logs.
    """

    records: str
    product: str
    picture: str
    tables: Mapping[str, str]
    limits: str
    accuracy: str
    sweeps: Mapping[str, str]
    answer: Mapping[str, str]
    growth: str
    logs: str


class Unfinished:
    """A study whose run has failed.

    Args:
        study: the study that was run.
        files: the files that its rules make.
        unmade: the files of the jobs that should have been done and were not, each with the
            workload or shard that it is of; files under their names come from an earlier run.
        failures: the jobs that failed; those of another workflow's are left out.
    """

    def __init__(
        self,
        study: Study,
        files: Files,
        unmade: Mapping[str, str],
        failures: Sequence[Failure],
    ) -> None:
        self._study, self._files, self._unmade = study, files, unmade
        self._failures = [one for one in failures if self._is_own(one)]

    def write(self) -> None:
        """Write tables, figures of the study and the answer from the records that there are."""
        files, tables = self._files, self._files.tables
        found = list(chain.from_iterable(map(self._rows, self._study.names)))
        failed = self.failed()
        write_performance(
            found,
            csv_path=Path(tables["performance_csv"]),
            markdown=Path(tables["performance_md"]),
            hdf5=Path(tables["performance_h5"]),
            html=Path(tables["performance_html"]),
            failed=failed,
        )
        write_accuracy(
            found,
            read_growth(Path(files.growth)) if self._is_made(files.growth) else [],
            csv_path=Path(tables["accuracy_csv"]),
            markdown=Path(tables["accuracy_md"]),
            html=Path(tables["accuracy_html"]),
        )
        if "csv" in tables:
            parts = [part for name in self._study.names for part in self._study.parts(name)]
            made = filter(self._is_made, map(files.records.format, parts))
            shards = [record for record in read_all_records(made) if record.shard]
            write_shards(shards, csv_path=Path(tables["csv"]), markdown=Path(tables["markdown"]))
        draw_limits(Path(files.limits), found)
        draw_accuracy(Path(files.accuracy), found)
        for name, path in files.sweeps.items():
            draw_sweep(Path(path), name, found, self._study.sweeps[name])
        products = {name: files.picture.format(name) for name in self._study.names}
        whole = {name: files.product.format(name) for name in self._study.names}
        write_answers(
            [self._study.workload(name) for name in self._study.names],
            found,
            AnswerFigures(
                limits=Path(files.limits),
                accuracy=Path(files.accuracy),
                sweeps={name: Path(path) for name, path in files.sweeps.items()},
                products={n: Path(path) for n, path in products.items() if self._is_made(path)},
            ),
            AnswerFiles(**{name: Path(path) for name, path in files.answer.items()}),
            made={name: Path(path) for name, path in whole.items() if self._is_made(path)},
            lacking={n: self._why(n) for n, path in whole.items() if not self._is_made(path)},
            failed=failed,
        )

    def failed(self) -> list[dict[str, object]]:
        """Return a row for each job that failed, and for each workload that was not reached."""
        rows: list[dict[str, object]] = [
            {
                "workload": one.part or "the study",
                "step": one.step,
                "reason": one.reason,
                "log": one.log,
            }
            for one in self._failures
        ]
        reported = {split_part(one.part)[0] for one in self._failures}
        waiting = {split_part(part)[0] for part in self._unmade.values()} - reported
        rows += [
            {"workload": name, "step": "", "reason": self._why(name), "log": ""}
            for name in self._study.names
            if name in waiting
        ]
        return [row | {"verified": False} for row in rows]

    def _is_own(self, failure: Failure) -> bool:
        own = split_part(failure.part)[0] in self._study.names
        return own or Path(failure.log).is_relative_to(self._files.logs)

    def _rows(self, name: str) -> Iterator[Record]:
        """Yield the records of a workload; where it has none, a row for each precision says why."""
        path = self._files.records.format(name)
        if self._is_made(path):
            yield from read_records(Path(path))
            return
        case = self._study.workloads[name]
        for precision in case.precisions or ():
            yield Record(
                workload=name, kind=case.kind, implementation=OURS, precision=precision,
                algorithm="", device="", verdict=FAILED, reason=self._why(name),
            )  # fmt: skip

    def _why(self, name: str) -> str:
        for one in self._failures:
            if split_part(one.part)[0] == name:
                return f"{one.step}: {one.reason} (see {one.log})"
        reads = {one: self._files.product.format(one) for one in self._study.upstream(name)}
        lacking = [f"{one} ({file})" for one, file in reads.items() if file in self._unmade]
        if lacking:
            return f"reads the product of {', '.join(lacking)}, which was not made"
        return "not reached: the run ended before"

    def _is_made(self, path: str) -> bool:
        return bool(path) and path not in self._unmade and Path(path).is_file()
