"""Answers straight from records: exact matches, pooled over sessions, conflicts shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from perfdb_git.errors import NoEvidenceError
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.model.estimate import (
    CostEstimate,
    CostSupport,
    Diagnostics,
    Explanation,
    Method,
    NearMiss,
    Provenance,
    Validity,
)
from perfdb_git.model.policy import Policy
from perfdb_git.model.query import CostQuery
from perfdb_git.model.records import SeriesKey
from perfdb_git.model.values import JsonValue, Scalar
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.providers.evidence import EvidenceReader, RecordSetView
from perfdb_git.providers.matching import Match, Matcher
from perfdb_git.providers.near_misses import near_misses
from perfdb_git.providers.pooled_records import PooledRecords, pool_records
from perfdb_git.providers.validations import (
    SimulatorVerdict,
    ValidationReader,
    judge_simulators,
)

if TYPE_CHECKING:
    from perfdb_git.providers.row_finder import RowFinder

REVISION = 1
"""Raised whenever the same records give another answer."""

_METHODS: Mapping[str, Method] = {
    "measured": "measured",
    "profiled": "measured",
    "simulated": "simulated",
}


class RecordedProvider:
    """Exact answers from the records of one snapshot.

    Parameters
    ----------
    evidence : EvidenceReader
        Records of the snapshot.
    vocabulary : Vocabulary
        Dimensions in force.
    policy : Policy
        Matching, conflict and interval rules in force.
    kinds : Sequence[str]
        Record kinds that may answer; all of one method.
    validations : ValidationReader or None
        By what simulated records are admitted; ``None`` admits none of them. Measured records
        need none.
    reports_near_misses : bool
        Whether a query without a record is told the nearest recorded contexts.
    """

    def __init__(
        self,
        evidence: EvidenceReader,
        vocabulary: Vocabulary,
        policy: Policy,
        *,
        kinds: Sequence[str] = ("measured", "profiled"),
        validations: ValidationReader | None = None,
        reports_near_misses: bool = True,
    ) -> None:
        self._evidence = evidence
        self._policy = policy
        self._vocabulary = vocabulary
        self._matcher = Matcher(vocabulary, policy.matching)
        self._kinds = tuple(kinds)
        self._validations = validations
        self._reports_near_misses = reports_near_misses
        self._asked: dict[SeriesKey, Sequence[RecordSetView]] = {}
        self._finders: dict[SeriesKey, RowFinder] = {}
        self._memo: tuple[CostQuery, Match] | None = None
        self._answers: tuple[Match, PooledRecords] | None = None

    @property
    def name(self) -> str:
        """``recorded``, or ``recorded-simulated`` for simulated records."""
        return "recorded" if self.method == "measured" else "recorded-simulated"

    @property
    def method(self) -> Method:
        """``measured`` or ``simulated``, by the kinds that may answer."""
        return _METHODS[self._kinds[0]]

    @property
    def revision(self) -> str:
        """Provider revision, with the digest of the evidence and validations it reads."""
        parts = [self._evidence.records_digest, *self._kinds]
        if self.method == "simulated" and self._validations is not None:
            parts += self._validations.validation_ids
        digest = sha256_hex(" ".join(parts).encode())
        return f"{self.name}/{REVISION}+{digest[:12]}"

    def supports(self, query: CostQuery) -> CostSupport:
        """Match the query against the index; ambiguity and refused conflicts are blocking."""
        match = self._match(query)
        if not match.candidates:
            return self._support(
                "no-record",
                self._miss_reason(query),
                near=self._near_misses(query),
            )
        return self.support_of(match)

    def support_of(self, match: Match) -> CostSupport:
        """Judge records that match a query; at least one does."""
        deciding = match.deciding
        if self._policy.matching.query_unknown == "refuse":
            deciding = dict(match.open_values)
        if deciding:
            return self._support(
                "ambiguous-context",
                f"{_matching(match)}, but they differ in what the query leaves open: "
                + "; ".join(f"{name} = {_either(values)}" for name, values in deciding.items()),
                blocking=True,
                missing=tuple(deciding),
                near=(NearMiss(changes=deciding, distance_octaves=0, records=match.row_count),),
            )
        return self._supports_values(match)

    def _supports_values(self, match: Match) -> CostSupport:
        refusal = self._verdict(match).refusal
        if refusal is not None:
            return self._support("not-validated", f"{_matching(match)}, but {refusal}")
        answer = self._answer(match)
        if not answer.rows:
            text = (
                f"{answer.throttled.text()}: policy {self._policy.name} refuses them, "
                "--accept-throttled admits them"
            )
            return self._support("throttled", text, blocking=True)
        if not answer.metrics:
            return self._support("no-value", "the matching records hold no value")
        if self._policy.protocol_unknown == "refuse" and answer.grade == "protocol-unknown":
            return self._support(
                "protocol-unknown", "the policy refuses records whose protocol is unknown"
            )
        conflicts = answer.conflicts(self._policy.conflict.threshold)
        if conflicts and self._policy.conflict.action == "refuse":
            return self._support("conflict", "; ".join(conflicts), blocking=True)
        return CostSupport(
            provider=self.name,
            answerable=True,
            code="exact-match",
            reason=f"{_matching(match)} exactly, of {_sessions(answer.session_count)}"
            + "".join(f"; {note}" for note in answer.throttled.notes()),
            method=self.method,
        )

    def estimate(self, query: CostQuery) -> CostEstimate:
        """Pool the matching records, each re-read from its Git object."""
        support = self.supports(query)
        if not support.answerable:
            raise NoEvidenceError(support.reason, code=support.code)
        return self.estimate_of(self._match(query), query)

    def estimate_of(self, match: Match, query: CostQuery) -> CostEstimate:
        """Pool records that `support_of` says can answer a query."""
        answer = self._answer(match)
        extensions, extension_notes = answer.extensions()
        return CostEstimate(
            metrics={name: pooled.estimate for name, pooled in answer.metrics.items()},
            method=self.method,
            stochastic=None,
            validity=Validity(
                kind="exact", distance_octaves=0, domain=_domain(self._matcher, query)
            ),
            provenance=Provenance(
                provider=self.name,
                revision=self.revision,
                record_ids=answer.record_ids,
                source_revisions=answer.source_revisions,
                calibration=None,
                commit=self._evidence.commit,
                measured_at=answer.oldest_measurement,
            ),
            diagnostics=Diagnostics(
                missing_context=answer.match.unstated,
                assumptions=answer.assumptions(query),
                conflicts=answer.conflicts(self._policy.conflict.threshold),
                protocol=answer.grade,
                notes=(
                    *self._verdict(answer.match).notes,
                    *answer.throttled.notes(),
                    *answer.level_notes(),
                    *extension_notes,
                ),
            ),
            extensions=extensions,
        )

    def explain(self, query: CostQuery) -> Explanation:
        """List the series searched, the records found and how they were pooled."""
        steps = []
        keys = self._series(query)
        for key in keys:
            sets = self._evidence.record_sets(key)
            rows = sum(record_set.row_count for record_set in sets)
            steps.append(
                f"series {key.kind} {key.device} {key.operation}: {len(sets)} record set(s), "
                f"{rows} records"
            )
        if not keys:
            steps.append("no series for this operation and device")
        support = self.supports(query)
        steps.append(f"{support.code}: {support.reason}")
        if support.answerable:
            for name, pooled in self._answer(self._match(query)).metrics.items():
                steps += [
                    f"{name}: session {session} has {center:.6g} {pooled.estimate.unit}"
                    for session, center in pooled.session_centers.items()
                ]
        return Explanation(provider=self.name, revision=self.revision, steps=tuple(steps))

    def _support(
        self,
        code: str,
        reason: str,
        *,
        blocking: bool = False,
        missing: tuple[str, ...] = (),
        near: tuple[NearMiss, ...] = (),
    ) -> CostSupport:
        return CostSupport(
            provider=self.name,
            answerable=False,
            code=code,
            reason=reason,
            method=self.method,
            blocking=blocking,
            missing_fields=missing,
            near_misses=near,
        )

    def series(self, operation: str, device: str | None) -> list[SeriesKey]:
        """Return the series that may answer; those of every device where it is left open."""
        return [
            key
            for key in self._evidence.series_keys()
            if key.kind in self._kinds
            and key.operation == operation
            and (device is None or key.device == device)
        ]

    def _series(self, query: CostQuery) -> list[SeriesKey]:
        return self.series(query.operation, query.deployment.device)

    def _record_sets(self, query: CostQuery) -> list[RecordSetView]:
        return [
            record_set
            for key in self._series(query)
            for record_set in self._evidence.record_sets(key)
        ]

    def _possible_sets(
        self, query: CostQuery, coordinates: Mapping[str, Scalar]
    ) -> list[RecordSetView]:
        """Leave out record sets in which no row has the query's numbers."""
        wanted = self._matcher.relevant(coordinates)
        return [
            record_set for key in self._series(query) for record_set in self._sets_with(wanted, key)
        ]

    def _sets_with(self, wanted: Mapping[str, Scalar], key: SeriesKey) -> Sequence[RecordSetView]:
        record_sets = self._evidence.record_sets(key)
        if self._asked.get(key) is not record_sets:
            # One question alone would pay for columns, and an import, that nobody needs again.
            self._asked[key] = record_sets
            return record_sets
        from perfdb_git.providers.row_finder import RowFinder

        finder = self._finders.get(key)
        if finder is None or finder.record_sets is not record_sets:
            finder = self._finders[key] = RowFinder(record_sets)
        return finder.record_sets_with(wanted, self._matcher.is_material)

    def _match(self, query: CostQuery) -> Match:
        # Read once: another thread that asks the same resolver may replace it.
        memo = self._memo
        if memo is None or memo[0] is not query:
            coordinates = query.coordinates()
            match = self._matcher.match(coordinates, self._possible_sets(query, coordinates))
            if query.deployment.device is None:
                match = _with_devices(match)
            memo = self._memo = (query, match)
        return memo[1]

    def _answer(self, match: Match) -> PooledRecords:
        memo = self._answers
        if memo is None or memo[0] is not match:
            answer = pool_records(
                self._evidence,
                match,
                self._policy.interval.level,
                refuse_throttled=self._policy.throttled == "refuse",
            )
            if self.method == "simulated":
                answer = answer.only(self._verdict(match).responses)
            memo = self._answers = (match, answer)
        return memo[1]

    def _verdict(self, match: Match) -> SimulatorVerdict:
        """Judge simulated records by their validations; measured ones stand for themselves."""
        if self.method != "simulated":
            return SimulatorVerdict(refusal=None)
        known = () if self._validations is None else self._validations.validations()
        headers = (candidate.record_set.header for candidate in match.candidates)
        return judge_simulators(headers, known)

    def _near_misses(self, query: CostQuery) -> tuple[NearMiss, ...]:
        if not self._reports_near_misses:
            return ()
        return near_misses(
            query.coordinates(), self._record_sets(query), self._matcher, self._vocabulary
        )

    def _miss_reason(self, query: CostQuery) -> str:
        if self._series(query):
            return "no record has this context"
        device = query.deployment.device
        devices = sorted(
            {
                key.device
                for key in self._evidence.series_keys()
                if key.operation == query.operation and key.kind in self._kinds
            }
        )
        where = "" if device is None else f" on {device}"
        others = f"; recorded devices: {', '.join(devices)}" if devices else ""
        return f"no {self.method} records of {query.operation}{where}{others}"


def _with_devices(match: Match) -> Match:
    """Treat the device like any other dimension that the query leaves open."""
    devices = tuple(sorted({item.record_set.header.device for item in match.candidates}))
    if not devices:
        return match
    return Match(
        candidates=match.candidates,
        open_values={"device": devices, **match.open_values},
        partly_open=match.partly_open,
        unstated=match.unstated,
    )


def _matching(match: Match) -> str:
    return "1 record matches" if match.row_count == 1 else f"{match.row_count} records match"


def _sessions(count: int) -> str:
    return "one session" if count == 1 else f"{count} sessions"


def _either(values: Sequence[Scalar], most: int = 6) -> str:
    texts = [str(value) for value in values[:most]]
    if len(values) > most:
        texts.append(f"{len(values) - most} more")
    return " or ".join(texts)


def _domain(matcher: Matcher, query: CostQuery) -> dict[str, JsonValue]:
    """State the answered point itself: an exact answer holds there and nowhere else."""
    relevant = matcher.relevant(query.coordinates())
    return {name: value for name, value in relevant.items() if not isinstance(value, str)}
