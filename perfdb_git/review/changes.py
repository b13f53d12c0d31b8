"""A change as its reviewer needs to see it: evidence first, then what it does to answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perfdb_git.database import DEFAULT_POLICY, PerformanceDatabase
from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError
from perfdb_git.formats.codec import decode
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.model.policy import Policy
from perfdb_git.model.records import Retraction
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.review.answers import AskedSnapshot
from perfdb_git.review.documents import DocumentChange, changed_documents, of_kind
from perfdb_git.review.impact import Impact, answer_impact
from perfdb_git.review.inputs import InputComparison, SnapshotInputs
from perfdb_git.review.sampling import sample_queries
from perfdb_git.review.series_changes import SeriesChange, series_change
from perfdb_git.review.settings import SettingChange, setting_changes
from perfdb_git.review.touched import TouchedSeries, touched_series
from perfdb_git.review.tracked import TrackedQuery
from perfdb_git.storage.git import GitStore

DEFAULT_QUERIES = 200
"""Queries asked before and after a change, those of plans included."""

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractionChange:
    """A retraction that came or went.

    ``target`` is a record set, or one of its rows; ``path`` the retraction's own file.
    """

    path: str
    target: str
    reason: str
    is_added: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Everything that one change does.

    Attributes
    ----------
    base, head : str
        Full commit ids.
    is_merge_base : bool
        Whether ``base`` is the merge base of the two commits that were named.
    policy : str
        Name of the policy that answers were compared under.
    documents : tuple of DocumentChange
        Files that differ, sorted by path.
    settings : tuple of SettingChange
        Values that differ in policies, vocabulary, profiles and pipelines.
    retractions : tuple of RetractionChange
        What was declared wrong.
    series : tuple of SeriesChange
        Records, series by series.
    impact : Impact
        Answers that differ.
    """

    base: str
    head: str
    is_merge_base: bool
    policy: str
    documents: tuple[DocumentChange, ...]
    settings: tuple[SettingChange, ...]
    retractions: tuple[RetractionChange, ...]
    series: tuple[SeriesChange, ...]
    impact: Impact


class ChangeReviewer:
    """Reviews the change between two commits of one repository.

    Parameters
    ----------
    database : PerformanceDatabase
        The repository.
    base, head : str
        Revisions.
    from_merge_base : bool
        Whether to compare with the newest common ancestor instead of ``base`` itself.
    policy : str
        Name of the policy that answers are compared under.

    Raises
    ------
    RepositoryUnavailableError
        Where a commit is not here, or 'no-merge-base'; shallow history has no merge base.
    """

    def __init__(
        self,
        database: PerformanceDatabase,
        base: str,
        head: str,
        *,
        from_merge_base: bool = False,
        policy: str = DEFAULT_POLICY,
    ) -> None:
        self.store = database.store
        self.policy = policy
        self.is_merge_base = from_merge_base
        self.head = database.at(head)
        first = database.store.resolve_revision(base)
        self.warnings = tuple(first.warnings)
        assert self.head.commit is not None
        before = first.commit
        if from_merge_base:
            before = _merge_base(database.store, first.commit, self.head.commit)
        self.base = database.at(before)
        self._comparison = InputComparison(
            SnapshotInputs(AskedSnapshot(self.base)), SnapshotInputs(AskedSnapshot(self.head))
        )

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The head's vocabulary, ``None`` where the head holds no evidence repository."""
        return self._comparison.head.asked.vocabulary

    def touched(self) -> tuple[TouchedSeries, ...]:
        """Return the series whose records differ."""
        return touched_series(self._comparison.base.asked, self._comparison.head.asked)

    def review(
        self,
        tracked: Sequence[TrackedQuery] = (),
        *,
        queries: int = DEFAULT_QUERIES,
        progress: Progress | None = None,
    ) -> Review:
        """Compare evidence and answers.

        Parameters
        ----------
        tracked : sequence of TrackedQuery
            Queries to ask whatever changed, such as those of plans.
        queries : int
            Queries to ask in all; a sample of what changed fills up what ``tracked`` leaves.
        progress : callable or None
            Called while queries are asked.
        """
        assert self.base.commit is not None and self.head.commit is not None
        documents = changed_documents(self.store, self.base.commit, self.head.commit)
        touched = self.touched()
        room = max(0, queries - len(tracked))
        sample = sample_queries(self._comparison, touched, policy=self.policy, limit=room)
        return Review(
            base=self.base.commit,
            head=self.head.commit,
            is_merge_base=self.is_merge_base,
            policy=self.policy,
            documents=documents,
            settings=setting_changes(self.store, documents),
            retractions=_retractions(self.store, documents),
            series=self._series(touched),
            impact=answer_impact(
                self._comparison, [*tracked, *sample], policy=self.policy, progress=progress
            ),
        )

    def _series(self, touched: Sequence[TouchedSeries]) -> tuple[SeriesChange, ...]:
        vocabulary = self.vocabulary
        policy = self._judging_policy()
        if vocabulary is None or policy is None:
            return ()
        threshold = policy.conflict.threshold
        return tuple(series_change(item, vocabulary, threshold=threshold) for item in touched)

    def _judging_policy(self) -> Policy | None:
        """Return the policy before the change, which judges it, else the one after it."""
        for side in (self._comparison.base, self._comparison.head):
            policy = side.asked.policy(self.policy)
            if isinstance(policy, Policy):
                return policy
        return None


def _merge_base(store: GitStore, base: str, head: str) -> str:
    found = store.merge_base(base, head)
    if found is None:
        raise RepositoryUnavailableError(
            f"commits {base} and {head} have no common ancestor",
            code="no-merge-base",
            remedy="write BASE..HEAD to compare the two commits themselves",
        )
    return found


def _retractions(
    store: GitStore, documents: tuple[DocumentChange, ...]
) -> tuple[RetractionChange, ...]:
    found = []
    for change in of_kind(documents, "retraction"):
        for blob, is_added in ((change.old, False), (change.new, True)):
            retraction = None if blob is None else _retraction(store, change.path, blob)
            if retraction is not None:
                found.append(
                    RetractionChange(
                        path=change.path,
                        target=retraction.target,
                        reason=retraction.reason,
                        is_added=is_added,
                    )
                )
    return tuple(found)


def _retraction(store: GitStore, path: str, blob: str) -> Retraction | None:
    """Read a retraction; what is none stops the opening of the snapshot that holds it."""
    try:
        value = read_json(store.read_blob(blob, path=path), document=path)
        SchemaStore().validate(value, document=path, expected_kind="retraction")
        return decode(Retraction, value, document=path)
    except InvalidInputError:
        return None
