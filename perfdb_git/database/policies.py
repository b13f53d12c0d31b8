"""The policy that answers are given under, from the snapshot or from a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from perfdb_git.formats.codec import decode, encode
from perfdb_git.formats.digests import canonical_digest, sha256_hex
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.formats.strict_json import read_json
from perfdb_git.formats.strict_yaml import read_yaml
from perfdb_git.model.policy import Policy
from perfdb_git.model.result import PolicyReference
from perfdb_git.model.values import JsonValue

DEFAULT_POLICY = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInForce:
    """A policy with the digest of its document and where it came from."""

    policy: Policy
    reference: PolicyReference

    def accepting_throttled(self) -> PolicyInForce:
        """Return the policy with throttled records admitted; answers under it are marked."""
        if self.policy.throttled == "accept":
            return self
        policy = replace(self.policy, throttled="accept")
        reference = replace(
            self.reference, digest=canonical_digest(encode(policy)), origin="external-policy"
        )
        return PolicyInForce(policy=policy, reference=reference)


def policy_from_file(path: Path) -> PolicyInForce:
    """Return a policy from outside the snapshot; answers under it are marked."""
    data = path.read_bytes()
    value = read_document(path, data)
    SchemaStore().validate(value, document=str(path), expected_kind="policy")
    policy = decode(Policy, value, document=str(path))
    reference = PolicyReference(
        name=policy.name, digest=f"sha256:{sha256_hex(data)}", origin="external-policy"
    )
    return PolicyInForce(policy=policy, reference=reference)


def read_document(path: Path, data: bytes) -> JsonValue:
    """Read a document of a file, YAML or JSON by its name."""
    if path.suffix in (".yaml", ".yml"):
        return read_yaml(data, document=str(path))
    return read_json(data, document=str(path))
