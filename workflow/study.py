"""A study: what a config says, complete, checked, and with its sweeps expanded.

`load_study` needs nothing but the config. `check_study` then looks at the device and at the user's
files, so that whatever can be wrong is said before the first job starts.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Literal

from argand import PRECISIONS
from argand.device import DeviceError, resolve
from pydantic import BaseModel, Field, InstanceOf, ValidationError, field_validator

from workflow.config.mistakes import StudyError, attach, messages, nearest, show
from workflow.config.model import Model
from workflow.config.study_file import read_study_file
from workflow.config.sweeps import MOST_CASES, expand
from workflow.methods.peers import PEERS
from workflow.methods.shards import Shard, choose_axis, shards
from workflow.workloads import KINDS, Case, Workload
from workflow.workloads.base import PrecisionName, known_precisions

__all__ = ["Settings", "Study", "StudyError", "check_study", "load_study", "workload_from_json"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Names of workloads: they become names of files."""
LONGEST_NAME = 200
"""In characters, the values of sweeps included: a file system takes 255 bytes, and temporary names,
endings and Snakemake's marks need some of them."""


class Settings(Model):
    """What holds for a whole study; a workload may differ in its precisions and baselines."""

    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="Where to compute; `auto` is a GPU where one answers, else the CPU, and on a "
        "cluster a GPU.",
    )
    seed: int = Field(
        20260101, ge=0, description="Where all random numbers start; each workload has its own."
    )
    precisions: tuple[PrecisionName, ...] = Field(
        tuple(PRECISIONS),
        min_length=1,
        description="Precisions at which every workload is measured.",
    )
    baselines: Literal["auto", "none"] | tuple[str, ...] = Field(
        "auto",
        description="Peers to measure beside ours: `auto` for all that are installed, `none`, "
        "or a list of names.",
    )
    keep_runs: bool = Field(
        False, description="Whether the results of every precision and peer are kept."
    )

    @field_validator("precisions")
    @classmethod
    def _precisions_exist(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return known_precisions(names)


class Study(Settings):
    """A whole study. Every case has its precisions and baselines filled in."""

    workloads: dict[str, InstanceOf[Case]]

    @property
    def names(self) -> tuple[str, ...]:
        """The workloads in the order of the config, those of a sweep one after another."""
        return tuple(self.workloads)

    def workload(self, name: str) -> Workload:
        """The workload of this name; raises StudyError with the choices where there is none."""
        case = self._case(name)
        return KINDS[case.kind](name, case, self.seed)

    def case_json(self, name: str) -> str:
        """All that a workload's results depend on in the config, in one stable line.

        The order of keys, comments and other workloads do not change it, so it tells Snakemake
        which workloads a changed config concerns. `workload_from_json` is its inverse; what was not
        given stays not given.
        """
        return self._json(name, set())

    def staged_json(self, name: str) -> str:
        """`case_json` without what the operands do not depend on: how they are computed."""
        return self._json(name, {"shards", "device_memory"})

    def _json(self, name: str, left_out: set[str]) -> str:
        case = self._case(name).model_dump(mode="json", exclude_unset=True, exclude=left_out)
        return json.dumps(
            {"name": name, "seed": self.seed, "case": case}, sort_keys=True, separators=(",", ":")
        )

    def shards(self, name: str) -> tuple[Shard, ...]:
        """The shards of a workload; none where it is computed whole."""
        count = self._case(name).shards
        return shards(count) if count > 1 else ()

    def parts(self, name: str) -> tuple[str, ...]:
        """What jobs compute of a workload: its own name, or ``name/02-of-16`` for each shard."""
        return tuple(f"{name}/{shard}" for shard in self.shards(name)) or (name,)

    def part_pattern(self, name: str) -> str:
        """What the names of `parts` have in common, as a regular expression."""
        count = len(self.shards(name))
        return re.escape(name) + (rf"/\d+-of-{count}" if count else "")

    def upstream(self, name: str) -> str | None:
        """The workload whose product this one reads, if any."""
        return self.workload(name).depends_on()

    def input_files(self, name: str) -> tuple[Path, ...]:
        """The user's files that a workload reads."""
        return tuple(dict.fromkeys(_paths(self._case(name))))

    def staged_from(self, name: str) -> list[str]:
        """The files that a workload is staged from; an upstream workload's product comes last."""
        upstream = self.upstream(name)
        products = [f"results/products/{upstream}.h5"] if upstream else []
        return [*map(str, self.input_files(name)), *products]

    def _case(self, name: str) -> Case:
        if name not in self.workloads:
            raise StudyError([f"workload must be one of {list(self.names)}, got {name!r}"])
        return self.workloads[name]


def _paths(value: Any) -> Iterator[Path]:
    if isinstance(value, Path):
        yield value
    elif isinstance(value, BaseModel):
        for _, part in value:
            yield from _paths(part)


def workload_from_json(text: str) -> Workload:
    """The workload that `Study.case_json` wrote down."""
    content = json.loads(text)
    kind = KINDS[content["case"]["kind"]]
    case = kind.case_type.model_validate_json(json.dumps(content["case"]))
    return kind(content["name"], case, content["seed"])


def load_study(
    config: Mapping[str, Any] | Path, overrides: Mapping[str, Any] | None = None
) -> Study:
    """Read and check a config, expand its sweeps and fill in its defaults.

    Args:
        config: a YAML file, or what one held. A file is better: mistakes in YAML itself, such as a
            key given twice, cannot be seen in the mapping that another reader made of it.
        overrides: keys of the study itself that take the place of the config's, as from a command
            line (``device: cpu``); ``workloads`` replaces them all.

    Raises:
        StudyError: every mistake in the config, one a line, each with its key.
    """
    raw = read_study_file(config) if isinstance(config, Path) else dict(config)
    raw.update(overrides or {})
    mistakes: list[str] = []
    workloads = raw.pop("workloads", None)
    settings = _parsed(Settings, raw, (), mistakes, extra=("workloads",))
    cases = _cases(workloads, mistakes)
    if settings is None or mistakes:
        raise StudyError(mistakes)
    completed = {name: _complete(case, settings) for name, case in cases.items()}
    for name, case in completed.items():
        assert case.precisions is not None  # _complete
        if case.precision != "auto" and case.precision not in case.precisions:
            mistakes.append(
                f"workloads.{name}.precision: must be auto or one of the workload's precisions "
                f"{list(case.precisions)}, got {case.precision!r}"
            )
    if mistakes:
        raise StudyError(mistakes)
    return Study(**settings.model_dump(), workloads=completed)


def _complete(case: Case, settings: Settings) -> Case:
    """The case with the study's precisions and baselines where it has none of its own."""
    inherited = ("precisions", "baselines")
    missing = [key for key in inherited if getattr(case, key) is None]
    return case.model_copy(update={key: getattr(settings, key) for key in missing})


def _parsed(
    model: type[Model],
    raw: Mapping[str, Any],
    at: tuple[str, ...],
    mistakes: list[str],
    extra: tuple[str, ...] = (),
) -> Any:
    """An instance of a model, or None with the mistakes added.

    Validated as JSON in strict mode: lists become tuples and text becomes paths, but no text
    becomes a number and no number a truth value.
    """
    try:
        text = json.dumps(raw)
    except (TypeError, ValueError) as error:
        mistakes.append(f"{'.'.join(at) or 'study'}: not plain data ({error})")
        return None
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        mistakes += messages(error, model, raw, at, extra)
        return None


def _cases(workloads: Any, mistakes: list[str]) -> dict[str, Case]:
    if not workloads:
        mistakes.append("workloads: the study is empty; name at least one workload")
        return {}
    if not isinstance(workloads, Mapping):
        mistakes.append(
            f"workloads: must be a mapping of names to workloads, got {show(workloads)}"
        )
        return {}
    cases: dict[str, Case] = {}
    for name, parameters in workloads.items():
        for full, case in _expanded(str(name), parameters, mistakes):
            if full in cases:
                mistakes.append(f"workloads.{name}: there are two workloads of the name {full!r}")
            if len(full) > LONGEST_NAME:
                mistakes.append(
                    f"workloads.{show(name)}: a name may have {LONGEST_NAME} characters with the "
                    f"values of its sweeps, got {len(full)}: {show(full)}"
                )
            cases[full] = case
        if len(cases) > MOST_CASES:
            mistakes.append(f"workloads: a study may have {MOST_CASES} cases, got more")
            break
    return cases


def _expanded(name: str, parameters: Any, mistakes: list[str]) -> list[tuple[str, Case]]:
    """The cases of one workload of the config; those that are right."""
    at = f"workloads.{name}"
    if not NAME.fullmatch(name):
        mistakes.append(
            f"{at}: a name must begin with a letter or digit and go on with letters, digits and "
            f"any of '._-', got {name!r}"
        )
    if not isinstance(parameters, Mapping):
        mistakes.append(f"{at}: must be a mapping with at least a kind, got {show(parameters)}")
        return []
    kind = parameters.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        hint = nearest(kind, KINDS) if isinstance(kind, str) else ""
        got = f", got {show(kind)}{hint}" if "kind" in parameters else " (it is missing)"
        mistakes.append(f"{at}.kind: must be one of {sorted(KINDS)}{got}")
        return []
    model = KINDS[kind].case_type
    try:
        expanded = expand(name, parameters, model)
    except StudyError as error:
        mistakes += error.mistakes
        return []
    cases = [(full, _parsed(model, raw, ("workloads", name), mistakes)) for full, raw in expanded]
    return [(full, case) for full, case in cases if case is not None]


def check_study(study: Study, *, device_here: bool = True) -> None:
    """Look for what is wrong outside the config: device, files, workloads that need each other.

    Reads the headers of the user's files and no data. Raises StudyError with every mistake.

    Args:
        study: what `load_study` returned.
        device_here: whether this machine computes, so that its devices must do.
    """
    mistakes = []
    if device_here:
        try:
            resolve(study.device)
        except DeviceError as error:
            mistakes.append(str(error))
    dependencies = _wrong_dependencies(study)
    mistakes += dependencies
    for name in study.names:
        keys = type(study.workloads[name]).model_fields
        mistakes += _unknown_baselines(name, study.workloads[name].baselines)
        try:
            study.workload(name).check()
            if not dependencies:
                mistakes += _wrong_shards(study, name, keys)
        except ValueError as error:
            mistakes.append(attach(("workloads", name), str(error), keys))
    if mistakes:
        raise StudyError(mistakes)


def _unknown_baselines(name: str, baselines: str | tuple[str, ...] | None) -> list[str]:
    """Peers that no kind has; whether one is installed, the job says where it runs."""
    known = sorted({peer for group in PEERS.values() for peer in group})
    named = baselines if isinstance(baselines, tuple) else ()
    return [
        f"workloads.{name}.baselines: must be auto, none, or of {known}, got {peer!r}"
        f"{nearest(peer, known)}"
        for peer in named
        if peer not in known
    ]


def _wrong_shards(study: Study, name: str, known: Iterable[str]) -> list[str]:
    """More shards than an axis has entries, or a kind that has no axis to split."""
    case, workload = study.workloads[name], study.workload(name)
    if case.shards == 1:
        return []
    upstream = study.upstream(name)
    lengths = workload.outline(study.workload(upstream) if upstream else None).axis_lengths()
    try:
        choose_axis(workload.splits, lengths, case.shards)
    except ValueError as error:
        return [attach(("workloads", name), f"shards: {error}", known)]
    return []


def _wrong_dependencies(study: Study) -> list[str]:
    """Products that are read but not made, cannot be read by that kind, or wait for each other."""
    needs = {name: study.upstream(name) for name in study.names}
    graph = {name: upstream for name, upstream in needs.items() if upstream is not None}
    mistakes = [_wrong_upstream(study, name, upstream) for name, upstream in graph.items()]
    if any(mistakes):
        return [text for text in mistakes if text]
    try:
        TopologicalSorter({name: [upstream] for name, upstream in graph.items()}).prepare()
    except CycleError as error:
        around = error.args[1]
        return [
            f"workloads.{around[0]}.input.workload: these read each other's products: "
            f"{' <- '.join(around)}"
        ]
    return []


def _wrong_upstream(study: Study, name: str, upstream: str) -> str:
    reads = KINDS[study.workloads[name].kind].reads
    choices = [
        other for other, case in study.workloads.items() if other != name and case.kind in reads
    ]
    if upstream in choices:
        return ""
    return (
        f"workloads.{name}.input.workload: must be one of {choices} (kind {' or '.join(reads)}), "
        f"got {upstream!r}{nearest(upstream, choices)}"
    )


def main() -> None:
    """Check the study files named on the command line and say what is wrong with them."""
    parser = argparse.ArgumentParser(prog="python -m workflow.study", description=main.__doc__)
    parser.add_argument("studies", metavar="STUDY", type=Path, nargs="+")
    parser.add_argument(
        "--elsewhere", action="store_true", help="other machines compute: this one needs no GPU"
    )
    given = parser.parse_args()
    for path in given.studies:
        try:
            study = load_study(path)
            check_study(study, device_here=not given.elsewhere)
        except StudyError as error:
            sys.exit(f"{path}:\n{error}")
        print(f"{path}: {len(study.names)} workloads ({', '.join(study.names)})")


if __name__ == "__main__":
    main()
