"""The one protocol behind which every source of answers stands."""

from __future__ import annotations

from typing import Protocol

from perfdb_git.model.estimate import CostEstimate, CostSupport, Explanation, Method
from perfdb_git.model.query import CostQuery

NOT_SELECTED = "no-calibration"
"""Code of a support that is none because the policy selects nothing for the query."""


class CostProvider(Protocol):
    """A source of estimates; deterministic for one (query, revision, seed)."""

    @property
    def name(self) -> str:
        """Short name, such as ``recorded``."""

    @property
    def method(self) -> Method:
        """Method of every estimate of this provider."""

    @property
    def revision(self) -> str:
        """``<name>/<n>+<digest of the documents it reads>``."""

    def supports(self, query: CostQuery) -> CostSupport:
        """Say whether and how well the query can be answered, without answering it."""

    def estimate(self, query: CostQuery) -> CostEstimate:
        """Answer a query for which `supports` says that it can be answered.

        Raises
        ------
        NoEvidenceError
            When it cannot.
        """

    def explain(self, query: CostQuery) -> Explanation:
        """Tell, step by step, how the answer or the refusal comes about."""
