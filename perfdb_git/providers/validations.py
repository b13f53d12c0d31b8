"""Whether a simulator's records may answer: only what was judged against measurements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from perfdb_git.model.records import RecordSetHeader

if TYPE_CHECKING:
    from perfdb_git.model.validation import Validation

_SHORT_DIGEST = 12


class ValidationDocument(Protocol):
    """A validation with its content address."""

    @property
    def sha256(self) -> str:
        """Content address."""

    @property
    def value(self) -> Validation:
        """What was compared, and how far apart it was."""


class ValidationReader(Protocol):
    """Validations of one snapshot."""

    @property
    def validation_ids(self) -> Sequence[str]:
        """SHA-256 of every validation, sorted; none of them is read for it."""

    def validations(self) -> Sequence[ValidationDocument]:
        """Return every validation, sorted by its digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorVerdict:
    """What validations say of some simulated records.

    Attributes
    ----------
    refusal : str or None
        Why the records may not answer; ``None`` where they may.
    responses : frozenset of str
        The metrics that all of the records were validated for.
    notes : tuple of str
        The validations that apply, each with its error and its limit.
    """

    refusal: str | None
    responses: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def judge_simulators(
    headers: Iterable[RecordSetHeader], validations: Sequence[ValidationDocument]
) -> SimulatorVerdict:
    """Judge simulated records by the validations of their simulator for their target.

    Each source, at its revision, needs a validation within its limit for the records' device,
    operation, component and capability revision; what the records do not state, the validation
    must not state either.

    Parameters
    ----------
    headers : iterable of RecordSetHeader
        Of the record sets that hold the records, at least one.
    validations : sequence of ValidationDocument
        All of the snapshot.
    """
    responses: list[frozenset[str]] = []
    notes: dict[str, None] = {}
    for header in headers:
        applying, refusal = _applying(header, validations)
        if refusal is not None:
            return SimulatorVerdict(refusal=refusal)
        notes |= dict.fromkeys(_text(document) for document in applying)
        responses.append(
            frozenset(item.value.response for item in applying if item.value.is_within_limit)
        )
    shared = frozenset.intersection(*responses)
    if not shared:
        return SimulatorVerdict(refusal="no metric is validated for all of their simulators")
    return SimulatorVerdict(refusal=None, responses=shared, notes=tuple(notes))


def _applying(
    header: RecordSetHeader, validations: Sequence[ValidationDocument]
) -> tuple[list[ValidationDocument], str | None]:
    """Return the validations for a record set, or the reason why none of them admits it."""
    tool, revision = header.source.tool, header.source.revision
    if revision is None:
        return [], f"the records do not state the revision of {tool}"
    found = [item for item in validations if item.value.simulator.name == tool]
    if not found:
        return [], f"there is no validation document of {tool}"
    target = _target_of_records(header.context)
    here = [item for item in found if _target_of_validation(item.value) == target]
    if not here:
        others = sorted({_target_text(_target_of_validation(item.value)) for item in found})
        return [], (
            f"{tool} is validated for another target: {'; '.join(others)}, "
            f"not {_target_text(target)}"
        )
    same = [item for item in here if item.value.simulator.revision == revision]
    if not same:
        others = sorted({f"{tool}@{item.value.simulator.revision}" for item in here})
        return [], f"another revision is validated: {', '.join(others)}, not {tool}@{revision}"
    if not any(item.value.is_within_limit for item in same):
        return [], "; ".join(_text(item) for item in same)
    return same, None


def _target_of_records(context: Mapping[str, object]) -> tuple[object, ...]:
    names = ("operation", "device", "component", "capability_revision")
    return tuple(context.get(name) for name in names)


def _target_of_validation(validation: Validation) -> tuple[object, ...]:
    target = validation.target
    return (validation.operation, target.device, target.component, target.capability_revision)


def _target_text(target: tuple[object, ...]) -> str:
    operation, device, component, capability = target
    text = f"{operation} on {device}"
    text += "" if component is None else f", component {component}"
    return text if capability is None else f"{text}, capability revision {capability}"


def _text(document: ValidationDocument) -> str:
    validation = document.value
    simulator, limit = validation.simulator, validation.limit
    errors = validation.held_out_report.overall
    head = f"validation {document.sha256[:_SHORT_DIGEST]} of {simulator.name}@{simulator.revision}"
    if errors is None:
        return f"{head} has no error"
    error = getattr(errors, limit.statistic)
    word = "within" if validation.is_within_limit else "over"
    return (
        f"{head}: {validation.response} {limit.statistic} {error:.4g} over {errors.n} pairs, "
        f"{word} its limit {limit.value:g}"
    )
