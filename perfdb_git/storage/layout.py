"""Where everything stands in an evidence repository: names to paths and back."""

from __future__ import annotations

import re

EVIDENCE = "evidence"
SCHEMAS = "schemas"
PROFILES = "profiles"
PIPELINES = "pipelines"
PLANS = "pipelines/plans"

VOCABULARY = "evidence/vocabulary.yaml"
RECORDS = "evidence/records"
MANIFESTS = "evidence/manifests"
SPLITS = "evidence/splits"
CALIBRATIONS = "evidence/calibrations"
CALIBRATION_SPECS = "evidence/calibrations/specs"
VALIDATIONS = "evidence/validations"
RETRACTIONS = "evidence/retractions"
POLICIES = "evidence/policies"
GATES = "evidence/policies/gates.yaml"
SYSTEM_PROFILES = "profiles/systems"

JSON_SUFFIX = ".json"
YAML_SUFFIX = ".yaml"
DOCUMENT_SUFFIXES = (JSON_SUFFIX, YAML_SUFFIX)
LOCK_SUFFIX = ".lock.json"

_SHORT_DIGEST = 12
_MAX_SLUG = 120
_NOT_PORTABLE = re.compile(r"[^a-z0-9._+=@]+")


def slug(text: str) -> str:
    """Return `text` as a name that every file system can hold.

    Lower case, because names that differ in case alone cannot be checked out everywhere. Two
    texts may share a slug: identity comes from documents, never from their paths.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        1 to 120 of ``a-z 0-9 . _ + = @ -``, beginning and ending with none of ``. -``.
    """
    cut = _NOT_PORTABLE.sub("-", text.lower()).strip(".-")[:_MAX_SLUG].rstrip(".-")
    return cut or "unnamed"


def record_set_path(device: str, operation: str, session: str, sha256: str) -> str:
    """Return the path of a record set.

    Parameters
    ----------
    device, operation, session : str
        From the record set's header.
    sha256 : str
        SHA-256 of the file's bytes, 64 hexadecimal digits.

    Returns
    -------
    str
        ``evidence/records/<device>/<operation>/<session>-<first 12 digits>.json``.
    """
    name = f"{slug(session)}-{sha256[:_SHORT_DIGEST]}{JSON_SUFFIX}"
    return f"{RECORDS}/{slug(device)}/{slug(operation)}/{name}"


def manifest_path(sha256: str) -> str:
    """Return the path of an environment manifest."""
    return f"{MANIFESTS}/{sha256}{JSON_SUFFIX}"


def retraction_path(sha256: str) -> str:
    """Return the path of a retraction, named by the digest of its own bytes."""
    return f"{RETRACTIONS}/{sha256}{JSON_SUFFIX}"


def split_path(name: str, sha256: str) -> str:
    """Return the path of a split, ``evidence/splits/<name>-<first 12 digits>.json``."""
    return f"{SPLITS}/{slug(name)}-{sha256[:_SHORT_DIGEST]}{JSON_SUFFIX}"


def calibration_path(family: str, sha256: str) -> str:
    """Return the path of a calibration revision."""
    return f"{CALIBRATIONS}/{family}/{sha256}{JSON_SUFFIX}"


def validation_path(sha256: str) -> str:
    """Return the path of a validation."""
    return f"{VALIDATIONS}/{sha256}{JSON_SUFFIX}"


def policy_path(name: str) -> str:
    """Return the path of a resolver policy."""
    return f"{POLICIES}/{name}{YAML_SUFFIX}"


def plan_paths(name: str) -> tuple[str, ...]:
    """Return the paths at which a plan may stand; only one of them may exist."""
    return tuple(f"{PLANS}/{name}{suffix}" for suffix in DOCUMENT_SUFFIXES)


def plan_lock_path(name: str) -> str:
    """Return the path of the lock of a plan."""
    return f"{PLANS}/{name}{LOCK_SUFFIX}"


def system_profile_paths(name: str) -> tuple[str, ...]:
    """Return the paths at which a system profile may stand; only one of them may exist."""
    return tuple(f"{SYSTEM_PROFILES}/{name}{suffix}" for suffix in DOCUMENT_SUFFIXES)


def schema_path(kind: str, version: int) -> str:
    """Return the path of a repository's copy of a schema.

    The kind of an extension's schema is ``extension/<name>``; it stands in ``extensions``.
    """
    folder = kind.replace("extension/", "extensions/", 1)
    return f"{SCHEMAS}/{folder}.v{version}.schema.json"


def document_name(path: str) -> str | None:
    """Return the name in the path of a JSON or YAML document, or None for another file."""
    name = path.rpartition("/")[2]
    for suffix in DOCUMENT_SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            return name.removesuffix(suffix)
    return None
