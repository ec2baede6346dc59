"""From a study to verified products, tables, figures: reads the config, names the targets."""

import re
from functools import partial
from pathlib import Path

from snakemake.logging import logger
from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

min_version("9.27")

# Another workflow may take this one as a module: then its own Snakefile lies elsewhere.
ROOT = Path(str(workflow.current_basedir))
IS_MODULE = workflow.modifier.parent_modifier is not None
DEFAULT_STUDY = ROOT / "config" / "config.yaml"

from workflow.jobs.joblog import share_packages

share_packages(ROOT)

from argand import DeviceError
from argand.runtime.compile.kernel_digest import kernel_digest
from benchmarks.peers import study_modules
from workflow.config.mistakes import StudyError
from workflow.preflight.check import checked_study
from workflow.preflight import file_names
from workflow.preflight.loading import load_study
from workflow.shards import split_part
from workflow.preflight.code_digest import code_digest
from workflow.preflight.future_results import age_future
from workflow.jobs.gpu_devices import study_gpus, list_gpus_for_jobs
from workflow.preflight.needs import asked, timing_threads, urgency
from workflow.jobs.progress import attach
from workflow.preflight.replaced_inputs import age_replaced
from workflow.storage import run_folder, run_metadata
from workflow.workloads import KINDS

# Jobs run on this machine, or a cluster's scheduler places them. Such a job starts Snakemake again,
# where it is not the main process. The executor is chosen after this file is read, but only one that
# submits jobs has a number of them (--jobs); a local one takes that for --cores.
IS_MAIN = workflow.is_main_process
ON_CLUSTER = not IS_MAIN or workflow.nodes is not None
RUNS_HERE = not ON_CLUSTER and not workflow.output_settings.dryrun
if IS_MAIN and workflow.nodes is not None and not workflow.output_settings.dryrun:
    if workflow.resource_settings.cores is not None:  # it would be taken for a cluster
        raise WorkflowError(
            "--jobs beside --cores: must be --cores N alone where jobs run on this machine, and "
            "--jobs N alone where a profile's executor submits them"
        )

# A study replaces the default one: no configfile directive, which merges. It is named by --config
# study=PATH, because Snakemake itself opens a --configfile first and, where the file says so, runs the
# Python in it (YTE); so that is only for a study that one trusts.
# A module is given a config by the workflow that takes it: the same keys, or the study itself.
if IS_MODULE:
    overrides = dict(config)
else:
    given_here = workflow.config_settings
    overrides = {**given_here.config, **file_names.typed_paths(given_here.config_args)}
for key in ("study", "out"):  # such as study=$NAME of a name that is not set
    if overrides.get(key, "path") in ("", None):
        raise WorkflowError(f"{key}: must be a path, got nothing")
named, out = [overrides.pop("study", None)], overrides.pop("out", None)
if not IS_MODULE:
    named += reversed(workflow.overwrite_configfiles or [])
path = Path(str(next(filter(None, named), DEFAULT_STUDY)))
given = {} if IS_MODULE and "workloads" in overrides and not any(named) else path
# Each study has a folder of its own, results/<name of its file>, or the one that --config out=PATH names.
# Files of a module have the prefix that the outer workflow gives it.
try:
    if IS_MODULE:
        folder = Path(str(out or workflow.pathvars.get("results")))
    else:
        folder = (
            file_names.named_folder(str(out)) if out else file_names.folder_of(path)
        )
        if IS_MAIN and ON_CLUSTER:
            for key, text in (("study", path), ("out", folder)):
                file_names.check_for_jobs(key, str(text))
    if IS_MAIN:
        study = checked_study(given, overrides, device_here=RUNS_HERE, folder=folder)
    else:
        study = load_study(given, overrides, folder=folder)
except StudyError as error:
    raise WorkflowError(str(error)) from None


pathvars:
    results=str(folder),


RESULTS = str(workflow.modifier.modify_path(str(folder)))
run_folder.use_folder(Path(RESULTS))
if IS_MAIN:
    run_folder.name_run(None if IS_MODULE else study.as_read())
else:
    try:  # a job may have waited in a queue while its run was killed and another one began
        run_folder.check_run()
        run_folder.check_study(study.as_read())
    except run_folder.ReplacedRunError as error:
        raise WorkflowError(str(error)) from None


envvars:
    run_folder.RUN,
    run_folder.FOLDER,


if IS_MAIN:  # before Snakemake looks at times
    try:
        age_future(Path(RESULTS), logger.info)
        age_replaced(study, Path(RESULTS), logger.info)
    except OSError as error:
        raise WorkflowError(
            f"{error}: its input was replaced, or its time is to come; let the owner of that file "
            "run the study, or give it another folder by --config out=PATH"
        ) from None

WORKLOADS = study.names
RECORDS = "<results>/records/{workload}.jsonl"  # of the whole workload, sharded or not
PRODUCT = "<results>/products/{workload}.h5"
SWEEPS = list(study.sweeps)
SHARDED = [name for name in WORKLOADS if study.shards(name)]
PARTS = [part for name in WORKLOADS for part in study.parts(name)]
SHARDS = [part for name in SHARDED for part in study.parts(name)]
UVH5 = [name for name in WORKLOADS if study.workloads[name].is_exported]

# How many GPUs jobs may use at once; 0 where the study is computed on the CPU. Snakemake knows no
# machine's number and sets no device: the cap is set here, the devices by workflow/jobs/gpu_lease.py.
# A cluster's scheduler knows both: there each job asks for one, and this machine needs none.
GPUS = 0 if study.device == "cpu" else 1
if RUNS_HERE:
    try:
        if GPUS:
            list_gpus_for_jobs()
        GPUS = study_gpus(study.device)
    except DeviceError as error:
        raise WorkflowError(str(error)) from None
    cap = workflow.global_resources.get("gpu").value  # --resources gpu=2
    GPUS = GPUS if cap is None else min(GPUS, cap)
    workflow.register_resource("gpu", GPUS)
GPU_PER_JOB = min(GPUS, 1)

# Named where Snakemake makes the environments of rules, and where it lints. Else it would keep a copy of
# the file, with the hash of every wheel, for each job, and read all of them for the report: three seconds.
# It checks variables of the environment but where it lints.
IS_LINT = not workflow.check_envvars
DEPLOYED = workflow.deployment_settings.deployment_method
NAMED = IS_LINT or DeploymentMethod.CONDA in DEPLOYED
ENVIRONMENT = "../../envs/environment.yaml" if NAMED else None

if IS_MAIN and not IS_MODULE and not IS_LINT:
    try:
        run_metadata.check_metadata(Path(RESULTS))
    except run_folder.FolderHeldError as error:
        raise WorkflowError(str(error)) from None

# The resources that a job of a workload asks a cluster's scheduler for.
asks = partial(asked, study, gpu=GPU_PER_JOB > 0)


report: "workflow/report/workflow.rst"


# A part is what one job computes: a workload (beams), or one shard of it (beams/02-of-16).
wildcard_constraints:
    workload="|".join(map(re.escape, WORKLOADS)),
    part="|".join(map(study.part_pattern, WORKLOADS)),


if IS_MAIN:
    progress = attach(logger, dry_run=workflow.output_settings.dryrun)


onstart:
    # Held until this process ends, however it ends, not until this block does: unlike Snakemake's own
    # lock, which the profile turns off, nobody has to remove it after a kill.
    try:
        run_folder.hold_folder()
        if not IS_MODULE:
            run_folder.claim_folder(path)
            run_metadata.note_metadata(Path(RESULTS))
        run_folder.remove_leftovers()
    except run_folder.FolderHeldError as error:
        raise WorkflowError(str(error)) from None
    if RUNS_HERE:
        # Each time it looks for jobs, the limiter has Snakemake look again a second later, so after n
        # jobs it would do so n times a second. Here the cores limit how many start.
        workflow.scheduler.job_rate_limiter = None


include: "workflow/rules/common.smk"
include: "workflow/rules/stage.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/verify.smk"
include: "workflow/rules/deliver.smk"
include: "workflow/rules/shards.smk"
include: "workflow/rules/export.smk"
include: "workflow/rules/tabulate.smk"


# They read records and tables alone and take a second: a cluster's submit host does them itself.
localrules:
    all,
    answer,
    combine,
    tabulate,
    tabulate_shards,
    draw_study,
    draw_sweep,
    draw_growth,
    reported,


rule all:
    default_target: True
    input:
        rules.answer.output,
        rules.tabulate.output,
        rules.manifest.output,
        rules.draw_study.output,
        expand(rules.draw_sweep.output, sweep=SWEEPS),
        rules.draw_growth.output if study.grade else [],
        rules.tabulate_shards.output if SHARDED else [],
        expand(RECORDS, workload=WORKLOADS),  # the manifest lists them
        expand(rules.run.output.run, part=PARTS) if study.keep_runs else [],
        expand(PRODUCT, workload=WORKLOADS),
        expand(rules.deliver.output.product, part=PARTS),  # also those that shards are joined from
        expand(rules.write_uvh5.output, workload=UVH5),
        expand(rules.draw.output, workload=WORKLOADS),


DRAWN = [Path(path) for path in expand(rules.draw.output, workload=WORKLOADS)]
REPORTED = [
    *[rules.tabulate.output[name] for name in ("performance_html", "accuracy_html")],
    # Snakemake shows all that a figure is made from, so this one only where the products are drawn.
    *([rules.answer.output.figure] if all(map(Path.is_file, DRAWN)) else []),
    *rules.draw_study.output,
    *expand(rules.draw_sweep.output, sweep=SWEEPS),
    *(rules.draw_growth.output if study.grade else []),
    *expand(rules.draw.output, workload=WORKLOADS),
]


rule reported:
    """Ask for the files that `snakemake --report` can show, after a run that failed too."""
    input:
        [path for path in REPORTED if Path(path).is_file()],


onerror:
    # Snakemake starts no job of which one input is missing: what sums up the study is written here,
    # without the workloads that failed. It calls the handlers of a module only where the outer workflow
    # does (docs/pipeline.md).
    # The import stands here because few runs fail, and Matplotlib takes long to import.
    from workflow.outcome.unfinished import Files, Unfinished

    made = {str(path) for job in workflow.dag.jobs for path in job.output}
    if set(rules.tabulate.output) & made:
        unmade = {
            str(path): job.wildcards_dict.get("part")
            or job.wildcards_dict.get("workload", "")
            for job in workflow.dag.needrun_jobs()
            for path in job.output
        }
        tables = dict(rules.tabulate.output.items())
        if SHARDED:
            tables |= dict(rules.tabulate_shards.output.items())
        curves = expand(rules.draw_sweep.output.curves, sweep=SWEEPS)
        summed = {
            *tables.values(),
            *rules.draw_study.output,
            *curves,
            *rules.answer.output,
        }
        try:
            # Marked as begun, they are made again by the same command.
            for job in workflow.dag.jobs:
                if summed & set(map(str, job.output)):
                    workflow.persistence.started(job)
            # The manifest lists files that are written again.
            for path in rules.manifest.output:
                Path(path).unlink(missing_ok=True)
            files = Files(
                records=rules.combine.output.records.replace("{workload}", "{}"),
                product=rules.gather.output.product.replace("{workload}", "{}"),
                picture=rules.draw.output.product.replace("{workload}", "{}"),
                tables=tables,
                limits=rules.draw_study.output.limits,
                accuracy=rules.draw_study.output.accuracy,
                sweeps=dict(zip(SWEEPS, curves)),
                answer=dict(rules.answer.output.items()),
                growth=rules.growth_of_errors.output.growth if study.grade else "",
                logs=str(Path(rules.tabulate.log[0]).parent),
            )
            Unfinished(study, files, unmade, progress.failures).write()
        except (OSError, ValueError) as error:
            logger.error(f"no tables of what is done: {error}")
