"""What an answer depends on, as one digest."""

from __future__ import annotations

from collections.abc import Mapping

from perfdb_git.formats.digests import canonical_digest


def cache_key(
    *,
    query_digest: str,
    trees: Mapping[str, str | None],
    revisions: Mapping[str, str],
    policy_digest: str,
    committer_time: int | None,
    seed: int | None = None,
    exclusion: str | None = None,
) -> str:
    """Return the digest of everything that an answer depends on.

    Parameters
    ----------
    query_digest : str
        Digest of the canonical query.
    trees : Mapping[str, str | None]
        Tree ids of evidence, profiles and schemas.
    revisions : Mapping[str, str]
        Revision of every provider that the policy admits, by tier.
    policy_digest : str
        Digest of the policy document.
    committer_time : int or None
        Only where freshness is limited; otherwise the commit's time does not matter.
    seed : int or None
        Of stochastic answers.
    exclusion : str or None
        Digest of the evidence that the question leaves aside.
    """
    left_aside = {} if exclusion is None else {"exclusion": exclusion}
    return canonical_digest(
        {
            "query": query_digest,
            "trees": dict(trees),
            "revisions": dict(revisions),
            "policy": policy_digest,
            "committer_time": committer_time,
            "seed": seed,
            **left_aside,
        }
    )
