"""What analytical and fallback answers share: a query's work, and the profile that answers it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.model.estimate import CostSupport, Method
from perfdb_git.model.policy import Policy
from perfdb_git.model.query import CostQuery
from perfdb_git.model.system_profile import SystemProfile
from perfdb_git.model.vocabulary import Operation, Vocabulary
from perfdb_git.operations.element_sizes import ELEMENT_BYTES
from perfdb_git.operations.work import (
    FORMULAS_WITHOUT_DTYPE,
    UNMODELLED,
    Coordinates,
    Work,
    work_of,
)
from perfdb_git.providers.evidence import ProfileReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a model cannot answer a query."""

    code: str
    reason: str
    missing: tuple[str, ...] = ()

    def as_support(self, provider: str, method: Method) -> CostSupport:
        """Return the refusal as the word of a provider."""
        return CostSupport(
            provider=provider,
            answerable=False,
            code=self.code,
            reason=self.reason,
            method=method,
            missing_fields=self.missing,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledWork:
    """A query, or columns of them, reduced to operation, work and the profile of the device."""

    operation: Operation
    coordinates: Coordinates
    work: Work
    profile: SystemProfile


class ProfileSelection:
    """The system profiles that one policy selects, and the work that queries are under it.

    Parameters
    ----------
    profiles : ProfileReader
        System profiles of the snapshot.
    vocabulary : Vocabulary
        Operations and their work formulas.
    policy : Policy
        Names the profile that may answer for each device.
    """

    def __init__(self, profiles: ProfileReader, vocabulary: Vocabulary, policy: Policy) -> None:
        self._profiles = profiles
        self._vocabulary = vocabulary
        self._policy = policy

    @cached_property
    def digest(self) -> str:
        """Short digest over the documents of every profile that the policy selects."""
        parts = [
            f"{device}={self._profile_digest(name)}"
            for device, name in sorted(self._policy.system_profiles.items())
        ]
        return sha256_hex("\n".join(parts).encode())[:12]

    def work(self, query: CostQuery) -> ProfiledWork | Refusal:
        """Find the profile that the policy selects and count the query's work."""
        return self.work_at(query.coordinates())

    def work_at(self, coordinates: Coordinates) -> ProfiledWork | Refusal:
        """Do the same for known dimensions by flat name; numbers may be columns ``(n,)``."""
        return _profiled_work(coordinates, self._vocabulary, self._policy, self._profiles)

    def _profile_digest(self, name: str) -> str:
        try:
            return self._profiles.system_profile_digest(name)
        except InvalidInputError:
            # `work` tells what is wrong with it; a revision only has to change when it is mended.
            return "unreadable"


def _profiled_work(
    coordinates: Coordinates, vocabulary: Vocabulary, policy: Policy, profiles: ProfileReader
) -> ProfiledWork | Refusal:
    device, name_of_operation = coordinates.get("device"), str(coordinates["operation"])
    if device is None:
        return Refusal(code="missing-shape", reason="the device is unknown", missing=("device",))
    name = policy.system_profiles.get(str(device))
    if name is None:
        return Refusal(
            code="no-profile", reason=f"policy {policy.name} selects no profile for {device}"
        )
    try:
        profile = profiles.system_profile(name)
    except InvalidInputError as error:
        return Refusal(code="profile-unreadable", reason=error.message)
    operation = vocabulary.operations[name_of_operation]
    work = _work(coordinates, operation)
    if isinstance(work, Refusal):
        return work
    return ProfiledWork(operation=operation, coordinates=coordinates, work=work, profile=profile)


def _work(coordinates: Coordinates, operation: Operation) -> Work | Refusal:
    if operation.work == UNMODELLED:
        return Refusal(
            code="no-work-model",
            reason=f"the work of {coordinates['operation']} is not modelled",
        )
    if operation.work in FORMULAS_WITHOUT_DTYPE:
        needed: tuple[str, ...] = operation.shape
    else:
        needed = ("dtype", *operation.shape)
    missing = tuple(name for name in needed if name not in coordinates)
    if missing:
        return Refusal(
            code="missing-shape",
            reason=f"the work needs {', '.join(missing)}",
            missing=missing,
        )
    for name in ("dtype", "kv_cache_dtype"):
        dtype = coordinates.get(name)
        if dtype is not None and str(dtype) not in ELEMENT_BYTES:
            return Refusal(code="no-element-size", reason=f"no element size known for {dtype}")
    return work_of(operation.work, coordinates)
