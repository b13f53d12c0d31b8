"""Making a new evidence repository: Git, schemas, vocabulary, policy, gates, review, a welcome."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pygit2

from perfdb_git.errors import RepositoryUnavailableError, UsageError
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.storage import layout
from perfdb_git.storage.append import write_new_files
from perfdb_git.storage.objects import GIT_FAILURES
from perfdb_git.storage.repository_templates import template_files

ATTRIBUTES = ".gitattributes"
README = "README.md"

_DEFAULT_POLICY = "default"
_BRANCH = "refs/heads/main"
_EXACT_BYTES = b"* -text\n"
_SELECTIONS = ("calibrations:", "system_profiles:", "series:", "  extrapolation:")
_WELCOME = b"""\
# Performance evidence

Measurements, simulations and models of how operations behave on devices, read with
[perfdb](https://pypi.org/project/perfdb-git/). A commit is a snapshot; a pull request is how
evidence enters.

```sh
perfdb import table --mapping MAPPING FILE --commit
perfdb check
perfdb list
perfdb resolve operation=gemm device=DEVICE dtype=float16 m=128 n=4096 k=4096
```

- `evidence/records/`: record sets, never edited; a wrong one is retracted.
- `evidence/vocabulary.yaml`: every dimension and operation, once.
- `evidence/policies/`: which sources may answer, in which order; `gates.yaml`: what calibrations
  and records must reach.
- `profiles/systems/`: devices as models see them; a policy selects them.
- `profiles/`, `pipelines/`: timing profiles and pipelines for `perfdb simulate`.
- `schemas/`: copies of the released schemas that judge all of it.
- `.github/workflows/`: review of pull requests; name the owners in `.github/CODEOWNERS`.
- `.pre-commit-config.yaml`: `pre-commit install` checks evidence before it is committed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRepository:
    """What `initialise` made.

    Attributes
    ----------
    root : Path
        The folder that holds ``evidence``.
    written : tuple of str
        Paths of the new files, sorted.
    kept : tuple of str
        Paths of files that were there already and stayed as they are.
    created_git : bool
        Whether the Git repository is new too.
    """

    root: Path
    written: tuple[str, ...]
    kept: tuple[str, ...]
    created_git: bool


def initialise(path: Path, *, schemas: SchemaStore | None = None) -> NewRepository:
    """Make an evidence repository in a folder, new or empty of evidence; nothing is committed.

    Parameters
    ----------
    path : Path
        The folder, made where missing. In an existing Git repository it is the top folder.
    schemas : SchemaStore or None
        Whose schemas to copy; None takes the package's own.

    Raises
    ------
    UsageError
        'evidence-exists', 'schemas-exist', 'not-a-directory' or 'nested-repository'.
    RepositoryUnavailableError
        Where Git or the file system refuses.
    """
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is not a directory", code="not-a-directory")
    for folder, code in ((layout.EVIDENCE, "evidence-exists"), (layout.SCHEMAS, "schemas-exist")):
        present = path / folder
        if present.is_symlink() or (present.exists() and _has_files(present)):
            raise UsageError(
                f"{present} is not empty", code=code, remedy="nothing was changed; name another"
            )
    _refuse_nested(path)
    created = _make_git(path)
    files = _evidence_files(schemas or SchemaStore())
    optional = {ATTRIBUTES: _EXACT_BYTES, README: _WELCOME, **template_files()}
    kept = tuple(name for name in optional if (path / name).exists())
    files |= {name: content for name, content in optional.items() if name not in kept}
    written = write_new_files(path, files)
    return NewRepository(root=path, written=written, kept=kept, created_git=created)


def _has_files(folder: Path) -> bool:
    return not folder.is_dir() or next(folder.iterdir(), None) is not None


def _refuse_nested(path: Path) -> None:
    """Refuse a folder inside another work tree: Git reads evidence from the top folder."""
    existing = path.resolve()
    while not existing.exists():
        existing = existing.parent
    try:
        found = pygit2.discover_repository(str(existing))
        top = None if found is None else pygit2.Repository(found).workdir
    except GIT_FAILURES as error:
        raise _git_failure(path, error) from error
    if found is not None and top is None:
        raise UsageError(
            f"{path} lies in the bare Git repository {found}",
            code="nested-repository",
            remedy="name a folder outside it; push to it once there is a commit",
        )
    if top is not None and Path(top).resolve() != path.resolve():
        raise UsageError(
            f"{path} lies inside the Git repository {top}",
            code="nested-repository",
            remedy=f"name its top folder, {top}, or a folder outside it",
        )


def _make_git(path: Path) -> bool:
    """Make the Git repository where there is none, and tell whether it is new."""
    if (path / ".git").exists():
        return False
    try:
        pygit2.init_repository(str(path), initial_head=_BRANCH)
    except GIT_FAILURES as error:
        raise _git_failure(path, error) from error
    return True


def _git_failure(path: Path, error: Exception) -> RepositoryUnavailableError:
    return RepositoryUnavailableError(
        f"no Git repository can be made in {path}: {error}",
        code="init-failed",
        remedy="check the path and its permissions",
    )


def _evidence_files(schemas: SchemaStore) -> dict[str, bytes]:
    files = {
        layout.schema_path(kind, number): schemas.schema_bytes(kind, number)
        for kind in schemas.kinds()
        for number in schemas.known_versions(kind)
    }
    files[layout.VOCABULARY] = _shipped(layout.VOCABULARY, "vocabulary.yaml")
    policy = layout.policy_path(_DEFAULT_POLICY)
    files[policy] = _without_selections(_shipped(policy, f"policies/{_DEFAULT_POLICY}.yaml"))
    files[layout.GATES] = _without_selections(_shipped(layout.GATES, "policies/gates.yaml"))
    return files


def _shipped(in_checkout: str, in_package: str) -> bytes:
    """Return a file of the installed package, else that of the checkout."""
    import perfdb_git

    package = Path(perfdb_git.__file__).parent
    installed = package / "data" / in_package
    return (installed if installed.is_file() else package.parent / in_checkout).read_bytes()


def _without_selections(policy: bytes) -> bytes:
    """Leave out what a policy or gates name: the new repository has no profile or series yet."""
    kept: list[str] = []
    depth: int | None = None
    for line in policy.decode("utf-8").splitlines(keepends=True):
        indent = len(line) - len(line.lstrip(" "))
        if depth is not None and (indent > depth or not line.strip() or line.startswith("#")):
            continue
        depth = indent if line.startswith(_SELECTIONS) else None
        if depth is None:
            kept.append(line)
    return ("".join(kept).rstrip("\n") + "\n").encode("utf-8")
