"""The points of a tool's file with what their user states, judged by the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from perfdb_git.environment.device_terms import term_of_product
from perfdb_git.errors import InvalidInputError, NoEvidenceError
from perfdb_git.formats.redaction import Redactor
from perfdb_git.importers.stated_facts import StatedFacts, contradiction
from perfdb_git.importers.tool_results import Point, ToolResult
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import value_fault

_SHOWN_SKIPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PointCompleter:
    """Completes the points of one file; nothing that is missing is guessed."""

    result: ToolResult
    facts: StatedFacts
    document: str
    vocabulary: Vocabulary
    redactor: Redactor

    def completed(self) -> list[Point]:
        """Return the points with the stated facts, redacted and judged by the vocabulary.

        Raises
        ------
        InvalidInputError
            'no-points', 'missing-fact', 'contradicted-fact', 'bad-value' or 'duplicate-name'.
        NoEvidenceError
            'no-points' where the run itself left out everything, with its reasons.
        """
        document, skipped = self.document, self.result.skipped
        if not self.result.points and skipped:
            more = f" and {len(skipped) - _SHOWN_SKIPS} more" if len(skipped) > _SHOWN_SKIPS else ""
            shown = "; ".join(skipped[:_SHOWN_SKIPS])
            raise NoEvidenceError(f"{document}: no evidence in it: {shown}{more}", code="no-points")
        if not self.result.points:
            raise InvalidInputError(
                "holds no usable measurement",
                code="no-points",
                document=document,
                remedy="check that the run ended well",
            )
        device = self._device()
        return [self._completed(point, device) for point in self.result.points]

    def _completed(self, point: Point, device: Mapping[str, Scalar | None]) -> Point:
        dimensions = dict(point.dimensions)
        for name, value in {**device, **self.facts.dimensions}.items():
            own = dimensions.get(name)
            if own is not None and own != value and name != "operation":
                raise contradiction(name, value, own, self.document)
            dimensions[name] = value
        dimensions["operation"] = point.operation
        protocol = self.facts.protocol_with(point.protocol, place=self.document)
        redact = self.redactor.text
        self._judge(point, dimensions)
        return replace(
            point,
            dimensions={n: redact(v) if isinstance(v, str) else v for n, v in dimensions.items()},
            sources={
                name: redact(cell) if isinstance(cell, str) else cell
                for name, cell in point.sources.items()
            },
            protocol=protocol,
        )

    def _judge(self, point: Point, dimensions: Mapping[str, Scalar | None]) -> None:
        """Refuse what is missing for the operation, or illegal in the vocabulary."""
        document = f"{self.document}: {point.place}"
        stated = self.facts.dimensions.get("operation")
        operation = self.vocabulary.operations.get(point.operation)
        if operation is None:
            raise InvalidInputError(
                f"needs the operation {point.operation!r}, which the vocabulary lacks",
                code="unknown-operation",
                document=document,
                remedy="add it to evidence/vocabulary.yaml, as the shipped one has it",
            )
        if stated is not None and stated != point.operation:
            raise contradiction("operation", stated, point.operation, document)
        needed = ("device", *operation.shape)
        missing = [name for name in needed if name not in dimensions]
        if dimensions.get("device", "") is None:
            missing.append("device")
        if missing:
            raise InvalidInputError(
                f"does not say {', '.join(missing)}",
                code="missing-fact",
                document=document,
                remedy=" ".join(f"--set {name}=…" for name in missing)
                + " (null where it is unknown, except for the device)",
            )
        for name, value in dimensions.items():
            self._judge_value(name, value, point.operation, document)

    def _judge_value(self, name: str, value: Scalar | None, operation: str, document: str) -> None:
        dimension = self.vocabulary.dimensions.get(name)
        entry = self.vocabulary.operations[operation]
        fault = None
        if dimension is None:
            fault = "the vocabulary has no such dimension"
        elif dimension.group == "shape" and name not in (*entry.shape, *entry.optional):
            fault = f"operation {operation} has no such dimension"
        elif value is not None and name != "operation":
            fault = value_fault(dimension, value)
        if fault is not None:
            raise InvalidInputError(
                f"{name} = {value!r}: {fault}", code="bad-value", document=document
            )

    def _device(self) -> dict[str, Scalar | None]:
        """Return device dimensions from the names in the file, where all mean one product."""
        names = set(self.result.environment.device_names)
        if "device" in self.facts.dimensions or not names:
            return {}
        devices = self.vocabulary.dimensions["device"]
        terms = {term_of_product(name, devices) for name in names}
        found = terms.pop() if len(terms) == 1 else None
        if found is None:
            shown = ", ".join(sorted(map(repr, names)))
            raise InvalidInputError(
                f"names the device {shown}, which is no device of the vocabulary",
                code="missing-fact",
                document=self.document,
                remedy="say which it is: --set device=…",
            )
        return {"device": found.device, "form_factor": found.form_factor}
