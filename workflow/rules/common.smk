# The keys of a workload that rules of its parts need.


def whole(wildcards):
    """The workload that a part belongs to."""
    return split_part(wildcards.part)[0]


def case_of_part(wildcards):
    return study.case_json(whole(wildcards))


def run_of_part(wildcards):
    return study.run_json(whole(wildcards))


def staged_of_part(wildcards):
    return rules.stage.output.staged.format(workload=whole(wildcards))


def code_of_workload(step):
    """A parameter of a rule that changes with the code which a step computes a workload by."""

    def digest(wildcards):
        name = getattr(wildcards, "workload", None) or whole(wildcards)
        peers = study_modules() if step == "run" else ()
        return code_digest(step, KINDS[study.workloads[name].kind].__module__, *peers)

    return digest


def one_of(names):
    """A wildcard's pattern for these names; one that nothing fits where there are none."""
    return "|".join(map(re.escape, names)) or "(?!)"


def urgency_of_part(wildcards):
    """Long workloads first. A scheduler of a cluster's has an order of its own."""
    name = getattr(wildcards, "workload", None) or whole(wildcards)
    return urgency(study, name, gpu=GPU_PER_JOB > 0)
