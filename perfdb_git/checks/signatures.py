"""Commits of a change signed by people whom a file from outside the change names.

Verification is OpenSSH's own ``ssh-keygen -Y verify``, as in ``git verify-commit``: who may sign,
in which time, under which authority, is what its ALLOWED SIGNERS format says.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from perfdb_git.checks.change import Change, SignedHistory
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.model.findings import Finding
from perfdb_git.storage.commit_signatures import SignedCommit
from perfdb_git.storage.git import GitStore

UNSIGNED = Rule(
    code="unsigned-commit",
    documentation="With --require-signed, every commit of the change has an SSH signature.",
    remedy="sign it: git rebase --force-rebase --gpg-sign with gpg.format=ssh",
)
UNTRUSTED = Rule(
    code="untrusted-signature",
    documentation="With --require-signed, an allowed signer made every signature.",
    remedy="let somebody of the allowed-signers file sign it, or let its owner add the signer",
)

_TOOL = "ssh-keygen"
_NAMESPACE = "git"
_ARMOUR = b"-----BEGIN SSH SIGNATURE-----"


class AllowedSigners:
    """Verifies signatures by one allowed-signers file.

    Parameters
    ----------
    content : bytes
        The file; kept, so that it cannot change between two commits.

    Raises
    ------
    UsageError
        'missing-tool' where OpenSSH is not installed.
    """

    def __init__(self, content: bytes) -> None:
        tool = shutil.which(_TOOL)
        if tool is None:
            raise UsageError(
                f"signatures are verified by {_TOOL}, which is not installed here",
                code="missing-tool",
                remedy="install OpenSSH's client (Debian: apt-get install openssh-client)",
            )
        self._tool = tool
        self._content = content

    def fault(self, commit: SignedCommit) -> str | None:
        """Say why a signature does not count, or None where it does."""
        assert commit.signature is not None
        with tempfile.TemporaryDirectory() as folder:
            signers, signature = Path(folder, "allowed"), Path(folder, "signature")
            signers.write_bytes(self._content)
            signature.write_bytes(commit.signature)
            files = ["-f", str(signers), "-s", str(signature), *_at(commit)]
            found = self._run(["-Y", "find-principals", *files], b"")
            principals = found.stdout.decode("utf-8", "replace").splitlines()
            if found.returncode != 0 or not principals:
                return "no allowed signer made the signature"
            for principal in principals:
                words = ["-Y", "verify", "-I", principal, "-n", _NAMESPACE, *files]
                if self._run(words, commit.payload).returncode == 0:
                    return None
        return f"the signature of {principals[0]} does not fit the commit"

    def _run(self, words: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
        # Times without a zone are local ones, and nothing of our environment has a part.
        environment = {"TZ": "UTC", "LC_ALL": "C"}
        command = [self._tool, *words]
        return subprocess.run(
            command, input=data, env=environment, capture_output=True, check=False
        )


def _at(commit: SignedCommit) -> list[str]:
    """Judge a key by the time of the commit, as git does: one that expired since still counts."""
    stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(max(commit.committer_time, 0)))
    return [f"-Overify-time={stamp}"]


def judge_signatures(change: Change) -> Iterator[Finding]:
    """Yield commits of the change that no allowed signer signed; nothing unless it is asked for."""
    history: SignedHistory | None = change.signed
    if history is None:
        return
    for commit in history.commits:
        name = f"commit {commit.id}"
        if commit.signature is None:
            yield UNSIGNED.broken(name, "the commit is not signed")
        elif not commit.signature.startswith(_ARMOUR):
            yield UNSIGNED.broken(name, "the commit's signature is no SSH signature")
        else:
            fault = history.signers.fault(commit)
            if fault is not None:
                yield UNTRUSTED.broken(name, fault)


def read_allowed_signers(path: Path, store: GitStore, merge_base: str) -> bytes:
    """Return an allowed-signers file that the change has no hand in.

    Parameters
    ----------
    path : Path
        The file, outside the work tree, or in it as the merge base has it.
    store : GitStore
        The repository.
    merge_base : str
        Full commit id.

    Raises
    ------
    UsageError
        'unreadable-file'; 'signers-from-head' where the file in the work tree is not the merge
        base's.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}",
            code="unreadable-file",
            remedy="name a file of lines such as: ada@example.org ssh-ed25519 AAAA...",
        ) from error
    root = store.work_tree
    if root is not None and path.resolve().is_relative_to(root.resolve()):
        inside = path.resolve().relative_to(root.resolve()).as_posix()
        if _committed(store, merge_base, inside) != content:
            raise UsageError(
                f"{path} is a file of the work tree that the merge base has not: whoever proposes "
                "a change would choose who may sign it",
                code="signers-from-head",
                remedy="name a file outside the repository, or one that the base branch holds",
            )
    return content


def _committed(store: GitStore, commit: str, path: str) -> bytes | None:
    try:
        blob = store.lookup(store.read_commit(commit).tree, path)
        return None if blob is None else store.read_blob(blob, path=path)
    except InvalidInputError:
        return None


SIGNATURES = Check(
    id="signatures",
    documentation="Commits of the change are signed, where that is asked for.",
    rules=(UNSIGNED, UNTRUSTED),
    judge_change=judge_signatures,
)
