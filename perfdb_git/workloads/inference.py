"""Inference phases as plans: what is asked, how often, and what the sum leaves out."""

from __future__ import annotations

from perfdb_git.model.plan import PLAN_SCHEMA, Composition, Plan
from perfdb_git.model.transformer import TransformerModel
from perfdb_git.workloads.inference_setting import InferenceSetting, QueryContext
from perfdb_git.workloads.inference_tasks import inference_tasks
from perfdb_git.workloads.training_documents import StatedDocument

_LEFT_OUT = (
    "Kernels follow each other without a gap; scheduling, sampling and transfers to and from the "
    "host are not in it."
)


def inference_plan(
    model: StatedDocument[TransformerModel],
    setting: InferenceSetting,
    context: QueryContext,
    *,
    name: str,
    policy: str | None = None,
) -> Plan:
    """Return the plan of one phase: the sum of its tasks on one rank.

    All ranks do equal work at the same time, so one rank's sum is the time of the phase.

    Parameters
    ----------
    model : StatedDocument of TransformerModel
        With its digest, which the description names.
    setting : InferenceSetting
        Phase, tokens and ranks.
    context : QueryContext
        Device, runtime and topology of the queries.
    name : str
        Name of the plan.
    policy : str or None
        Resolver policy of the snapshot; ``None`` takes the default one.

    Raises
    ------
    UsageError
        What `inference_tasks` raises.
    """
    return Plan(
        schema=PLAN_SCHEMA,
        name=name,
        description=f"{phase_text(model.value, setting, context)} ({model.sha256[:19]}). "
        f"{_LEFT_OUT}",
        policy=policy,
        queries=inference_tasks(model.value, setting, context),
        composition=Composition(kind="sum"),
    )


def phase_text(model: TransformerModel, setting: InferenceSetting, context: QueryContext) -> str:
    """Return what is estimated, for people."""
    sequences = "sequence" if setting.batch_size == 1 else "sequences"
    ranks = "" if setting.tensor_parallel == 1 else f"{setting.tensor_parallel} x "
    where = f"on {ranks}{context.everywhere['device']} in {setting.dtype}"
    many = f"{setting.batch_size:,} {sequences}"
    if setting.phase == "decode":
        return (
            f"One decoding step of {many} of {model.name} with {setting.context:,} tokens in the "
            f"cache, {where}"
        )
    cached = f", {setting.cached:,} of them cached" if setting.cached else ""
    chunks = f", in chunks of {setting.chunk:,}" if setting.chunk else ""
    return (
        f"Prefill of {many} of {model.name} with {setting.context:,} tokens{cached}{chunks}, "
        f"{where}"
    )
