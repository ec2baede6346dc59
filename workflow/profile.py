"""A profile of Snakemake: the mistakes that Snakemake would find below pages of its own usage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from workflow.config.mistakes import nearest, show
from workflow.executor import executor_of

_COMPUTED = "__use_yte__"
"""Key with which Snakemake runs the Python in a profile, so that it alone knows what it says."""


class ProfileError(ValueError):
    """A mistake in a profile, in one line."""


def check_profile(folder: Path) -> None:
    """Check the file of a profile before Snakemake reads it.

    Raises ProfileError where there is none, it is no YAML, an option is unknown, or an executor is
    not installed.
    """
    path = folder / "config.yaml"
    if not path.is_file():
        raise ProfileError(f"must be a folder with a config.yaml, got {str(folder)!r}")
    content = _content(path)
    if _COMPUTED in content:
        return
    # Here: it takes more than a second to import, which a run without a profile need not wait for.
    from snakemake.cli import get_argument_parser  # type: ignore[import-untyped]

    actions = {
        option.removeprefix("--"): action
        for action in get_argument_parser()._actions
        for option in action.option_strings
        if option.startswith("--")
    }
    for key in content:
        if key not in actions:
            hint = nearest(key, actions)
            raise ProfileError(f"{path}: {key}: must be an option of Snakemake{hint}")
    executors = list(actions["executor"].choices)
    named = str(content.get("executor", "local"))
    if named not in executors and "$" not in named:
        raise ProfileError(
            f"{path}: executor: must be one of {executors}, got {named!r}"
            f"{nearest(named, executors)} (another one needs its plugin: docs/clusters.md)"
        )


def lacks_jobs(folder: Path) -> bool:
    """Return whether a profile that `check_profile` took submits jobs and limits no number."""
    return executor_of(folder) != "" and not {"jobs", "cores", _COMPUTED} & set(
        _content(folder / "config.yaml")
    )


def _content(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, OSError) as error:
        raise ProfileError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ProfileError(f"{path}: must be a mapping of options, got {show(content)}")
    return {str(key).removeprefix("--"): value for key, value in content.items()}
