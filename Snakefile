"""From a study to verified products, tables, figures: reads the config, names the targets."""

from pathlib import Path

from snakemake.utils import min_version
from workflow.files import hold_folder
from workflow.study import StudyError, check_study, load_study

min_version("9.27")

ROOT = Path(workflow.basedir)
DEFAULT_STUDY = ROOT / "config" / "config.yaml"

# A study given with --configfile replaces the default one: no configfile directive, which merges.
study = load_study(
    (workflow.overwrite_configfiles or [DEFAULT_STUDY])[-1],
    overrides=workflow.config_settings.config,
)
check_study(study)

WORKLOADS = study.names


wildcard_constraints:
    workload="|".join(map(re.escape, WORKLOADS)),


onstart:
    # Held until this process ends, however it ends: unlike Snakemake's own lock, which the profile
    # turns off, nobody has to remove it after a kill.
    folder_lock = hold_folder(Path("results"))


include: "workflow/rules/stage.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/verify.smk"
include: "workflow/rules/deliver.smk"
include: "workflow/rules/tabulate.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        rules.tabulate.output,
        rules.growth.output,
        rules.limits.output,
        expand(rules.deliver.output, workload=WORKLOADS),
        expand(rules.draw.output, workload=WORKLOADS),
