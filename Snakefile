"""From a study to verified products, tables, figures: reads the config, names the targets."""

import re
from pathlib import Path

from snakemake.logging import logger
from snakemake.utils import min_version

min_version("9.27")

ROOT = Path(workflow.basedir)
DEFAULT_STUDY = ROOT / "config" / "config.yaml"

from workflow.steps.joblog import share_packages

share_packages(ROOT)

from argand import DeviceError
from argand.nvrtc import kernel_digest
from workflow.methods.shards import split_part
from workflow.storage.files import FolderHeldError, hold_folder, remove_leftovers
from workflow.steps.gpu_devices import study_gpus
from workflow.steps.progress import attach
from workflow.study import StudyError, check_study, load_study

# A study replaces the default one: no configfile directive, which merges. It is named by --config
# study=PATH, because Snakemake itself opens a --configfile first and, where the file says so, runs the
# Python in it (YTE); so that is only for a study that one trusts.
overrides = dict(workflow.config_settings.config)
named = [overrides.pop("study", None), *reversed(workflow.overwrite_configfiles or [])]
try:
    study = load_study(
        Path(str(next(filter(None, named), DEFAULT_STUDY))), overrides=overrides
    )
    check_study(study)
except StudyError as error:
    raise WorkflowError(str(error)) from None

WORKLOADS = study.names
RECORDS = "results/records/{workload}.jsonl"  # of the whole workload, sharded or not
PRODUCT = "results/products/{workload}.h5"
SHARDED = [name for name in WORKLOADS if study.shards(name)]
PARTS = [part for name in WORKLOADS for part in study.parts(name)]

# How many GPUs jobs may use at once; 0 where the study is computed on the CPU. Snakemake knows no
# machine's number and sets no device: the cap is set here, the devices by workflow/steps/gpu_lease.py.
try:
    GPUS = study_gpus(study.device)
except DeviceError as error:
    raise WorkflowError(str(error)) from None
if workflow.is_main_process and workflow.local_exec:
    asked = workflow.global_resources.get("gpu").value  # --resources gpu=2
    GPUS = GPUS if asked is None else min(GPUS, asked)
    workflow.register_resource("gpu", GPUS)
GPU_PER_JOB = min(GPUS, 1)


report: "workflow/report/workflow.rst"


# A part is what one job computes: a workload (beams), or one shard of it (beams/02-of-16).
wildcard_constraints:
    workload="|".join(map(re.escape, WORKLOADS)),
    part="|".join(
        re.escape(name) + (rf"/\d+-of-{len(study.shards(name))}" if name in SHARDED else "")
        for name in WORKLOADS
    ),


def whole(wildcards):
    """The workload that a part belongs to."""
    return split_part(wildcards.part)[0]


def case_of_part(wildcards):
    return study.case_json(whole(wildcards))


def staged_of_part(wildcards):
    return rules.stage.output.staged.format(workload=whole(wildcards))


def one_of(names):
    """A wildcard's pattern for these names; one that nothing fits where there are none."""
    return "|".join(map(re.escape, names)) or "(?!)"


if workflow.is_main_process:
    attach(logger, dry_run=workflow.output_settings.dryrun)


onstart:
    # Held until this process ends, however it ends: unlike Snakemake's own lock, which the profile
    # turns off, nobody has to remove it after a kill.
    try:
        folder_lock = hold_folder(Path("results"))
        remove_leftovers(Path("results"))
    except FolderHeldError as error:
        raise WorkflowError(str(error)) from None


include: "workflow/rules/stage.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/verify.smk"
include: "workflow/rules/deliver.smk"
include: "workflow/rules/shards.smk"
include: "workflow/rules/tabulate.smk"


rule all:
    default_target: True
    input:
        rules.tabulate.output,
        rules.draw_study.output,
        rules.tabulate_shards.output if SHARDED else [],
        expand(PRODUCT, workload=WORKLOADS),
        expand(rules.deliver.output.product, part=PARTS),  # also those that shards are joined from
        expand(rules.draw.output, workload=WORKLOADS),
