"""Evidence that a question leaves aside, by content address."""

from __future__ import annotations

from dataclasses import dataclass

EVIDENCE_EXCLUDED = "evidence-excluded"
"""Mark of every answer that was given with some of the snapshot's evidence left aside."""

EXCLUDED = "excluded"
"""Code of a calibration that the policy names and the question leaves aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Record sets and calibration revisions that may not answer, by SHA-256.

    Retracted evidence is wrong; excluded evidence is right, and would make the question void: a
    comparison with measurements must not be answered by those measurements.
    """

    record_sets: frozenset[str]
    calibrations: frozenset[str]

    def lines(self) -> tuple[str, ...]:
        """Return one line for each, sorted; equal exclusions have equal lines."""
        return tuple(
            sorted(
                [f"record-set {address}" for address in self.record_sets]
                + [f"calibration {address}" for address in self.calibrations]
            )
        )

    def __bool__(self) -> bool:
        return bool(self.record_sets or self.calibrations)
