"""The library's door: ``PerformanceDatabase.open(path).at("main").resolve(...)``.

This is the one place where storage meets resolution.
"""

from perfdb_git.database.policies import DEFAULT_POLICY, PolicyInForce, policy_from_file
from perfdb_git.database.repository import DEFAULT_REVISION, IndexSettings, PerformanceDatabase
from perfdb_git.database.snapshot import DatabaseSnapshot

__all__ = [
    "DEFAULT_POLICY",
    "DEFAULT_REVISION",
    "DatabaseSnapshot",
    "IndexSettings",
    "PerformanceDatabase",
    "PolicyInForce",
    "policy_from_file",
]
