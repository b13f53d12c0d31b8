"""``perfdb plan inference``: what a prefill or a decoding step takes, with every task a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
    work_tree,
)
from perfdb_git.database import DatabaseSnapshot, PerformanceDatabase
from perfdb_git.errors import UsageError
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.model.plan import Plan
from perfdb_git.model.result import Message
from perfdb_git.model.transformer import TransformerModel
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import parse_pairs
from perfdb_git.plans.coverage import Coverage
from perfdb_git.plans.resolving import resolve_document
from perfdb_git.plans.writing import plan_text
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.inference import inference_lines, inference_report
from perfdb_git.reports.written_files import replacing
from perfdb_git.storage.documents import StoredDocument
from perfdb_git.storage.layout import plan_paths
from perfdb_git.workloads.inference import inference_plan
from perfdb_git.workloads.inference_setting import InferenceSetting, Phase, QueryContext
from perfdb_git.workloads.transformer_documents import read_transformer_model

_HELP = """Estimate a prefill or a decoding step of a transformer, with every task a query.

MODEL is a file: a perfdb/transformer-model/v1 document (JSON or YAML), or a Hugging Face
config.json. Fields of it that change the work in a way that is not counted (experts, windows,
latent attention, quantised weights) are refused by name.

Each task on one rank is asked as 'perfdb resolve' asks: projections, attention, norms, rotation,
activations, additions, the writing of keys and values, all-reduces, embedding and logits. The total
is their sum. A refused task is never a zero: there is no total then, and the exit status is 4.

\b
Examples:
  perfdb plan inference --model llama.yaml --device a100 --tp 4 --topology dgx_a100 --per-node 4 \\
      --phase decode --batch 64 --context 2048
  perfdb plan inference --model config.json --device h200 --dtype bfloat16 --runtime trtllm \\
      --runtime-revision 1.3.0rc20 --phase prefill --batch 1 --context 8192 --chunk 2048 \\
      --write llama-prefill
"""

_DEFAULT_NAME = "inference"
_COUNT = click.IntRange(min=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """What the command was asked, as it was typed."""

    model: Path
    phase: Phase
    batch: int
    context: int
    cached: int
    chunk: int | None
    tp: int
    device: str
    dtype: str | None
    kv_dtype: str | None
    runtime: str | None
    runtime_revision: str | None
    topology: str | None
    per_node: int | None
    policy: str | None
    given: tuple[str, ...]


@click.command("inference", help=_HELP, short_help="Estimate a prefill or a decoding step.")
@click.option(
    "--model", required=True, type=click.Path(path_type=Path), metavar="FILE", help="The model."
)
@click.option("--device", required=True, metavar="NAME", help="The device of each rank.")
@click.option("--tp", type=_COUNT, default=1, metavar="N", help="Tensor-parallel ranks; 1.")
@click.option("--phase", required=True, type=click.Choice(["prefill", "decode"]))
@click.option("--batch", required=True, type=_COUNT, metavar="N", help="Sequences.")
@click.option(
    "--context",
    required=True,
    type=_COUNT,
    metavar="N",
    help="Tokens of each sequence: before a decoding step, after a prefill.",
)
@click.option(
    "--cached",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Tokens of each sequence that are in the cache before a prefill; 0.",
)
@click.option("--chunk", type=_COUNT, metavar="N", help="New tokens of each pass of a prefill.")
@click.option("--dtype", metavar="TYPE", help="Element type; by default the model's.")
@click.option("--kv-dtype", metavar="TYPE", help="Element type of the cache; by default the same.")
@click.option("--runtime", metavar="NAME", help="Software that runs the tasks.")
@click.option("--runtime-revision", metavar="TEXT", help="Its version.")
@click.option("--topology", metavar="NAME", help="What connects the ranks.")
@click.option("--per-node", type=_COUNT, metavar="N", help="Ranks on each node.")
@click.option(
    "--given",
    multiple=True,
    metavar="OP:KEY=VALUE",
    help="State a dimension of one operation besides or instead; null leaves it open.",
)
@click.option("--policy", metavar="NAME", help="A policy of the snapshot; by default 'default'.")
@click.option(
    "--write", "name", metavar="NAME", help="Write the queries to pipelines/plans/NAME.yaml."
)
@reading_options
@click.option("--explain", is_flag=True, help="List every task with its query.")
@json_option
@click.pass_obj
def inference(
    console: Console,
    /,
    choice: SnapshotChoice,
    name: str | None,
    explain: bool,
    **options: object,
) -> int:
    """Make the plan, resolve it, and render the report."""
    asked = _Options(**options)  # type: ignore[arg-type]
    model = read_transformer_model(asked.model)
    target = None if name is None else _PlanFile.of(choice.repository, name)
    with console.progress("indexing") as indexing, console.progress("resolving") as progress:
        snapshot = choice.open(indexing)
        setting, context = _request(asked, model.value, snapshot.vocabulary)
        plan = inference_plan(
            model, setting, context, name=name or _DEFAULT_NAME, policy=asked.policy
        )
        text = plan_text(plan)
        resolved = resolve_document(snapshot, _document(plan, text), progress=progress)
    if target is not None:
        target.write(text)
    report = inference_report(
        resolved,
        model=model.value,
        model_digest=model.sha256,
        setting=setting,
        written=None if target is None else target.shown,
    )
    return console.answer(
        data=encoded(report),
        lines=() if console.json else inference_lines(report, explain=explain),
        status="no-evidence" if resolved.missing else "ok",
        messages=_messages(snapshot, report.coverage),
    )


def _messages(snapshot: DatabaseSnapshot, coverage: Coverage) -> list[Message]:
    messages = list(snapshot_messages(snapshot))
    bounds = len(coverage.lower_bounds) + len(coverage.upper_bounds)
    if bounds:
        text = f"bounds, not expectations, answer {bounds} of {coverage.tasks} tasks"
        messages.append(Message(level="warning", code="bound", text=text))
    return messages


def _document(plan: Plan, text: str) -> StoredDocument[Plan]:
    return StoredDocument(
        path=plan_paths(plan.name)[-1], sha256=sha256_hex(text.encode()), value=plan
    )


def _request(
    asked: _Options, model: TransformerModel, vocabulary: Vocabulary
) -> tuple[InferenceSetting, QueryContext]:
    """Turn typed names into canonical terms."""
    stated = asked.dtype or model.dtype
    if stated is None:
        raise UsageError(
            f"{asked.model} states no element type", code="no-dtype", remedy="add --dtype float16"
        )
    dtype = str(_typed(vocabulary, dtype=stated)["dtype"])
    cache = str(_typed(vocabulary, kv_cache_dtype=asked.kv_dtype or dtype)["kv_cache_dtype"])
    setting = InferenceSetting(
        phase=asked.phase,
        batch_size=asked.batch,
        context=asked.context,
        tensor_parallel=asked.tp,
        dtype=dtype,
        kv_cache_dtype=cache,
        cached=asked.cached,
        chunk=asked.chunk,
    )
    context = QueryContext(
        everywhere=_typed(
            vocabulary,
            device=asked.device,
            dtype=dtype,
            runtime=asked.runtime,
            runtime_revision=asked.runtime_revision,
        ),
        collectives=_typed(
            vocabulary, topology=asked.topology, participants_per_node=asked.per_node
        ),
        by_operation=_given(asked.given, vocabulary),
    )
    return setting, context


def _typed(vocabulary: Vocabulary, **values: str | int | None) -> dict[str, Scalar]:
    pairs = [f"{name}={value}" for name, value in values.items() if value is not None]
    parsed = parse_pairs(pairs, vocabulary)
    return {name: value for name, value in parsed.items() if value is not None}


def _given(texts: Sequence[str], vocabulary: Vocabulary) -> dict[str, dict[str, Scalar | None]]:
    found: dict[str, list[str]] = {}
    for text in texts:
        operation, colon, pair = text.partition(":")
        if not colon or operation not in vocabulary.operations:
            raise UsageError(
                f"{text!r} is not OPERATION:KEY=VALUE",
                code="bad-pair",
                remedy="write, for example, all_reduce:runtime=nccl; operations: "
                f"{', '.join(sorted(vocabulary.operations))}",
            )
        found.setdefault(operation, []).append(pair)
    return {operation: parse_pairs(pairs, vocabulary) for operation, pairs in found.items()}


@dataclass(frozen=True, slots=True)
class _PlanFile:
    """Where the plan is written."""

    path: Path
    shown: str

    @classmethod
    def of(cls, repository: Path, name: str) -> _PlanFile:
        root = work_tree(PerformanceDatabase.open(repository))
        places = plan_paths(name)
        for place in places[:-1]:
            if (root / place).exists():
                raise _is_taken(place)
        return cls(path=root / places[-1], shown=places[-1])

    def write(self, text: str) -> None:
        """Write the file; one that people may have edited is not replaced."""
        if self.path.exists():
            if self.path.read_text(encoding="utf-8") == text:
                return
            raise _is_taken(self.shown)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _is_taken(path: str) -> UsageError:
    return UsageError(
        f"{path} stands there already, with other content",
        code="file-exists",
        remedy="choose another name, or remove the file first",
    )
