"""Files of a new repository that are not evidence: review in CI, hooks, owners.

This project's own workflows are made from the same templates, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perfdb_git import __version__

RELEASED = f"perfdb-git=={__version__}"
"""What pip installs as the checker of another repository: a released version, never the head's."""

REVIEW_WORKFLOW = ".github/workflows/evidence.yml"
COMMENT_WORKFLOW = ".github/workflows/evidence-comment.yml"

_TEMPLATES: Mapping[str, str] = {
    REVIEW_WORKFLOW: "evidence.yml",
    COMMENT_WORKFLOW: "evidence-comment.yml",
    ".github/CODEOWNERS": "CODEOWNERS",
    ".pre-commit-config.yaml": "pre-commit-config.yaml",
}
_PLACEHOLDER = b"@PERFDB@"


def template_files(requirement: str = RELEASED) -> dict[str, bytes]:
    """Return the content of each file by its path in a repository.

    Parameters
    ----------
    requirement : str
        What pip installs as the checker, such as ``perfdb-git==1.2.3``, or ``.`` for the checked
        out base.
    """
    import perfdb_git

    folder = Path(perfdb_git.__file__).parent / "templates"
    return {
        path: (folder / name).read_bytes().replace(_PLACEHOLDER, requirement.encode("ascii"))
        for path, name in _TEMPLATES.items()
    }
