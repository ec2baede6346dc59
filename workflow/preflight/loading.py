"""The `Study` of a config: read, checked by itself, sweeps expanded, defaults filled in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from workflow.config.mistakes import StudyError, messages, nearest, show
from workflow.config.model import Model
from workflow.config.study_file import read_study_file
from workflow.config.sweeps import MAX_CASES, expand
from workflow.storage.run_folder import RESULTS
from workflow.study import LONGEST_NAME, NAME, Settings, Study
from workflow.workloads import KINDS, Case


def load_study(
    config: Mapping[str, Any] | Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    folder: Path = RESULTS,
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
    of_command_line = ("study", "out") if overrides else ()
    settings = _parsed(Settings, raw, (), mistakes, extra=("workloads", *of_command_line))
    sweeps: dict[str, dict[str, dict[str, Any]]] = {}
    # A misspelt `workloads` is missing too: that is one mistake, reported already.
    misspelt = workloads is None and any(nearest(str(key), ["workloads"]) for key in raw)
    cases = {} if misspelt else _cases(workloads, sweeps, mistakes)
    # Where the settings are wrong the workloads are checked too, with the default ones.
    own = Settings.model_validate({}) if settings is None else settings
    completed = _measurable({name: _complete(case, own) for name, case in cases.items()}, mistakes)
    for name, case in completed.items():
        assert case.precisions is not None  # _complete
        reported = settings is None and cases[name].precisions is None
        if not reported and case.precision not in ("auto", *case.precisions):
            mistakes.append(
                f"workloads.{name}.precision: must be auto or one of the workload's precisions "
                f"{list(case.precisions)}, got {case.precision!r}"
            )
    study = Study(**own.model_dump(), workloads=completed, sweeps=sweeps, folder=folder)
    if mistakes:
        wrong = [] if not completed else [str(one) for one in workloads if _is_wrong(one, study)]
        raise StudyError(mistakes, study if completed else None, wrong)
    return study


def _is_wrong(name: Any, study: Study) -> bool:
    """Return whether a workload of the config is none of the study's and sweeps into none."""
    return not {str(name), *study.sweeps.get(str(name), ())} & study.workloads.keys()


def _complete(case: Case, settings: Settings) -> Case:
    """Return the case with precisions, the study's or its kind's, and with baselines."""
    own = case.own_precisions()
    precisions = tuple(name for name in settings.precisions if name in own)
    inherited = {"precisions": precisions, "baselines": settings.baselines}
    missing = {key: value for key, value in inherited.items() if getattr(case, key) is None}
    found = case.model_copy(update=missing)
    return found if found.baselines else found.model_copy(update={"baselines": "none"})  # []


def _measurable(cases: Mapping[str, Case], mistakes: list[str]) -> dict[str, Case]:
    """Return the cases that have a precision; the others are added to the mistakes."""
    mistakes += [
        f"workloads.{name}.precisions: must be given: those of the study are none of "
        f"{list(case.own_precisions())}, which it has"
        for name, case in cases.items()
        if not case.precisions
    ]
    return {name: case for name, case in cases.items() if case.precisions}


def _parsed(
    model: type[Model],
    raw: Mapping[str, Any],
    at: tuple[str, ...],
    mistakes: list[str],
    extra: tuple[str, ...] = (),
) -> Any:
    """Return an instance of a model, or None with the mistakes added.

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


def _cases(
    workloads: Any, sweeps: dict[str, dict[str, dict[str, Any]]], mistakes: list[str]
) -> dict[str, Case]:
    """Return the cases by name; of those that a sweep makes, the values are added to ``sweeps``."""
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
        for full, case, swept in _expanded(str(name), parameters, mistakes):
            if swept:
                sweeps.setdefault(str(name), {})[full] = swept
            if full in cases:
                made_by = [repr(one) for one, made in sweeps.items() if full in made]
                by = f", by the sweep of {' and of '.join(made_by)}" if made_by else ""
                mistakes.append(
                    f"workloads.{name}: there are two workloads of the name {full!r}{by}; "
                    "give one of them another name"
                )
            if len(full) > LONGEST_NAME:
                mistakes.append(
                    f"workloads.{show(name)}: a name may have {LONGEST_NAME} characters with the "
                    f"values of its sweeps, got {len(full)}: {show(full)}"
                )
            cases[full] = case
        if len(cases) > MAX_CASES:
            mistakes.append(f"workloads: a study may have {MAX_CASES} cases, got more")
            break
    return cases


def _expanded(
    name: str, parameters: Any, mistakes: list[str]
) -> list[tuple[str, Case, dict[str, Any]]]:
    """Return the right cases of one workload of the config, with the values of its sweeps."""
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
    cases = [
        (one.name, _parsed(model, one.parameters, ("workloads", name), mistakes), one.swept)
        for one in expanded
    ]
    right = [found for found in cases if found[1] is not None]
    if len(right) < len(cases):
        return right
    for key, (other, needed) in model.needs_value.items():
        values = dict.fromkeys(getattr(case, other) for _, case, _ in right)
        if key in parameters and needed not in values:
            mistakes.append(
                f"{at}.{key}: does nothing at {other}: {', '.join(values)}; it needs {other}: "
                f"{needed}"
            )
    return right
