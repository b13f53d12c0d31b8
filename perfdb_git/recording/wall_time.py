"""A record set of wall times of whole processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfdb_git.errors import UsageError
from perfdb_git.model.records import Column, MeasurementProtocol, Quantity, RecordSetHeader, Source
from perfdb_git.model.values import JsonValue, Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import build_query, parse_pairs
from perfdb_git.recording.runs import Run

RECORD_SET_SCHEMA = "perfdb/record-set/v1"
SYNCHRONIZATION = "wall time of a whole process, its start and its end included"
_NANO = 10**9


def stated_point(
    pairs: Sequence[str], vocabulary: Vocabulary, *, device: str | None, program: str
) -> dict[str, Scalar | None]:
    """Return the dimensions of what the command runs.

    Parameters
    ----------
    pairs : sequence of str
        ``KEY=VALUE`` texts.
    vocabulary : Vocabulary
        Their terms.
    device : str or None
        That of the manifest.
    program : str
        Name of the program, which becomes the implementation where none is stated: the time of a
        process must not answer for the time of a kernel unseen.

    Raises
    ------
    UsageError
        'no-operation', 'no-device', 'other-device', 'incomplete-shape', or a wrong pair.
    """
    values = parse_pairs(pairs, vocabulary)
    if not isinstance(values.get("operation"), str):
        raise UsageError(
            "the operation that the command runs is not stated",
            code="no-operation",
            remedy="--operation NAME with its shape as KEY=VALUE, or --tool NAME for a command "
            "whose output says it",
        )
    build_query(values, vocabulary)
    operation = str(values["operation"])
    missing = [name for name in vocabulary.operations[operation].shape if values.get(name) is None]
    if missing:
        raise UsageError(
            f"operation {operation} has no {', '.join(missing)}",
            code="incomplete-shape",
            remedy=f"state {' '.join(f'{name}=...' for name in missing)}",
        )
    chosen = values.setdefault("device", device)
    if chosen is None:
        raise UsageError(
            "the device is not known",
            code="no-device",
            remedy="name its vocabulary term with --device, or add one to evidence/vocabulary.yaml",
        )
    if device is not None and chosen != device:
        raise UsageError(
            f"device={chosen} is stated, and the environment has {device}", code="other-device"
        )
    values.setdefault("implementation", f"process {program}")
    return values


def wall_time_set(
    point: Mapping[str, Scalar | None],
    runs: Sequence[Run],
    vocabulary: Vocabulary,
    *,
    source: Source,
    session: str,
    environment: str,
    protocol: MeasurementProtocol,
    observed: Mapping[str, JsonValue],
) -> tuple[RecordSetHeader, list[list[object]]]:
    """Return the header and the one row: every repetition's seconds, in order."""
    numeric = [n for n in point if vocabulary.dimensions[n].type in ("integer", "number")]
    columns = [
        *(Column(name=n, role="dimension", unit=vocabulary.dimensions[n].unit) for n in numeric),
        Column(name="latency", role="metric", unit="s", statistic="sample"),
    ]
    header = RecordSetHeader(
        schema=RECORD_SET_SCHEMA,
        kind="measured",
        session=session,
        source=source,
        environment=environment,
        protocol=protocol,
        context={name: value for name, value in point.items() if name not in numeric},
        columns=tuple(columns),
        observed=observed,
    )
    samples = [run.nanoseconds / _NANO for run in runs]
    return header, [[*(point[name] for name in numeric), samples]]


def wall_time_protocol(
    *,
    warmup: int,
    repetitions: int,
    resolution_ns: int,
    clock_state: str | None,
    power_state: str | None,
) -> MeasurementProtocol:
    """Return how the wall times were taken."""
    return MeasurementProtocol(
        warmup=warmup,
        repetitions=repetitions,
        synchronization=SYNCHRONIZATION,
        timer_resolution=Quantity(value=float(resolution_ns), unit="ns"),
        clock_state=clock_state,
        power_state=power_state,
        measurement_error=None,
        notes=("One sample a run of the command, in the order of the runs.",),
    )
