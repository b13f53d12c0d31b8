"""Which calibration, slice and model answer: what single questions and batches share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.model.exclusion import EXCLUDED
from perfdb_git.model.policy import CalibrationChoice, Policy
from perfdb_git.model.values import Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.work_inputs import in_work_terms
from perfdb_git.providers.calibration_models import CalibrationDocument, CalibrationModels
from perfdb_git.providers.calibration_slices import SelectedSlice, Unanswered, select_slice
from perfdb_git.providers.evidence import EvidenceReader
from perfdb_git.providers.matching import Matcher
from perfdb_git.providers.protocol import NOT_SELECTED

if TYPE_CHECKING:
    from perfdb_git.providers.fitted_decoding import FittedPredictor
    from perfdb_git.providers.nearest_training import TrainingPoints

NAME = "calibrated"

REVISION = 3
"""Raised whenever the same calibration and query give another answer."""

RESPONSE = "latency"


def interval_rule(method: str, *, beyond: bool, over_jump: bool) -> str:
    """Return the name of an interval's rule by the place of its query."""
    return method + ("-widened" if beyond else "-over-jump" if over_jump else "")


class CalibrationSelection:
    """The revisions that one policy names, and what is needed to answer by them.

    Parameters
    ----------
    calibrations : CalibrationModels
        Revisions of the snapshot; one is read only when the policy names it for the query.
    vocabulary : Vocabulary
        Dimensions in force.
    policy : Policy
        Names the revisions, and the rules of matching.
    evidence : EvidenceReader or None
        Records, for the distance to the nearest one.
    excluded : collection of str
        Revisions that may not answer though the policy names them, by SHA-256.
    """

    def __init__(
        self,
        calibrations: CalibrationModels,
        vocabulary: Vocabulary,
        policy: Policy,
        *,
        evidence: EvidenceReader | None = None,
        excluded: Collection[str] = (),
    ) -> None:
        self.vocabulary = vocabulary
        self.policy = policy
        self._calibrations = calibrations
        self._evidence = evidence
        self._excluded = frozenset(excluded)
        self._matcher = Matcher(vocabulary, policy.matching)
        self._points: dict[tuple[str, int], tuple[str, TrainingPoints]] = {}

    @property
    def revision(self) -> str:
        """Provider revision, with the digest of the calibrations that the policy selects."""
        chosen = sorted(
            f"{choice.response} {choice.operation} {choice.device} {choice.revision}"
            + (f" {EXCLUDED}" if choice.revision in self._excluded else "")
            for choice in self.policy.calibrations
        )
        return f"{NAME}/{REVISION}+{sha256_hex(chr(10).join(chosen).encode())[:12]}"

    def document(self, operation: str, device: str | None) -> CalibrationDocument | Unanswered:
        """Return the revision that answers an operation on a device."""
        choice = self._choice(operation, device)
        if isinstance(choice, Unanswered):
            return choice
        if choice.revision in self._excluded:
            return Unanswered(
                code=EXCLUDED,
                reason=f"calibration {choice.revision[:12]} is excluded from this question",
            )
        try:
            document = self._calibrations.document(choice.revision)
        except InvalidInputError as error:
            return Unanswered(code=error.code, reason=error.message)
        calibration = document.value
        stated = (calibration.response, calibration.operation, calibration.device)
        if stated != (choice.response, choice.operation, choice.device):
            return Unanswered(
                code="calibration-mismatch",
                reason=f"the calibration that the policy names is of {', '.join(stated)}",
            )
        return document

    def select(
        self, document: CalibrationDocument, coordinates: Mapping[str, Scalar]
    ) -> SelectedSlice | Unanswered:
        """Return the slice that answers one query, with the query's inputs."""
        calibration = document.value
        try:
            return select_slice(
                calibration,
                in_work_terms(coordinates, calibration.inputs, self.vocabulary),
                self._matcher,
                refuse_open=self.policy.matching.query_unknown == "refuse",
            )
        except InvalidInputError as error:
            return Unanswered(code=error.code, reason=error.message)

    def predictor_of(
        self, document: CalibrationDocument, number: int
    ) -> Callable[[bool], FittedPredictor | None]:
        """Return what gives a slice's model inside (False) or beyond (True) its domain."""
        return lambda beyond: self._calibrations.predictor(document.sha256, number, beyond=beyond)

    def training_points(self, document: CalibrationDocument, number: int) -> TrainingPoints | None:
        """Return the records that a slice was trained on; None without evidence at hand."""
        if self._evidence is None:
            return None
        # Imported here: a query that no calibration answers needs none of it.
        from perfdb_git.providers.nearest_training import TrainingPoints

        key, digest = (document.sha256, number), self._evidence.records_digest
        known = self._points.get(key)
        if known is None or known[0] != digest:
            item = document.value.slices[number]
            points = TrainingPoints(self._evidence, document.value, item, self.is_zero_legal)
            known = self._points[key] = (digest, points)
        return known[1]

    def is_zero_legal(self, name: str) -> bool:
        """Tell whether a dimension may be zero."""
        return self.vocabulary.dimensions[name].zero

    def _choice(self, operation: str, device: str | None) -> CalibrationChoice | Unanswered:
        policy = self.policy
        named = [
            choice
            for choice in policy.calibrations
            if choice.response == RESPONSE and choice.operation == operation
        ]
        if named and device is None:
            return Unanswered(
                code="missing-input", reason="the device is unknown", missing=("device",)
            )
        found = [choice for choice in named if choice.device == device]
        if not found:
            where = "" if device is None else f" on {device}"
            return Unanswered(
                code=NOT_SELECTED,
                reason=f"policy {policy.name} selects no calibration revision of "
                f"{operation}{where}",
            )
        if len(found) > 1:
            return Unanswered(
                code="two-calibrations",
                reason=f"policy {policy.name} selects {len(found)} calibrations of "
                f"{operation} on {device}",
                blocking=True,
            )
        return found[0]
