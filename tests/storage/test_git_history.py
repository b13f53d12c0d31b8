"""Commits and ancestry, judged by ``git log``, ``git merge-base`` and ``git diff-tree``."""

import itertools
import random

import pytest

from perfdb_git.errors import RepositoryUnavailableError
from perfdb_git.storage.git import Change, GitStore, TreeFile

FILE, DIRECTORY = b"100644", b"40000"


def test_commit_fields(repository):
    first = repository.git("rev-parse", "HEAD")
    second = repository.commit("Subject line\n\nparent 1234\nbody")
    commit = GitStore.open(repository.path).read_commit(second)
    assert commit.id == second
    assert commit.tree == repository.git("rev-parse", "HEAD^{tree}")
    assert commit.parents == (first,)
    assert commit.committer_time == commit.author_time == repository.clock
    assert commit.author == "Ada Author <ada@example.org>"
    assert commit.summary == "Subject line"


def test_signature_lines_and_odd_bytes_in_a_commit(repository):
    tree = repository.git("rev-parse", "HEAD^{tree}")
    raw = (
        f"tree {tree}\nauthor A > B <a@b> oops\ncommitter C <c@d> -5 +051800\n"
        f"gpgsig -----BEGIN\n parent {'1' * 40}\n -----END\nencoding latin-1\n\n\n"
    ).encode() + b"caf\xe9\n"
    store = GitStore.open(repository.path)
    commit = store.read_commit(repository.write_loose(b"commit", raw))
    assert commit.parents == ()
    assert commit.committer_time == -5
    assert commit.author_time is None
    assert commit.summary == "caf\ufffd"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx",
        "tree {tree}\ncommitter A <a@b> 1 +0000\n\nx",
        "tree {tree}\nauthor A <a@b> 1 +0000\n\nx",
        "tree {tree}\nauthor A <a@b> 1 +0000\ncommitter A <a@b>\n\nx",
        "tree {tree}\nauthor A <a@b> 1 +0000\nparent {tree}\ncommitter A <a@b> 1 +0000\n\nx",
        "tree {tree}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1" + "0" * 30 + " +0000\n\nx",
    ],
)
def test_malformed_commits_are_refused(repository, text):
    raw = text.replace("{tree}", repository.git("rev-parse", "HEAD^{tree}")).encode()
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(repository.path).read_commit(repository.write_loose(b"commit", raw))
    assert error.value.code == "commit-malformed"


def test_first_parents(repository):
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("side")
    repository.git("checkout", "--quiet", "main")
    repository.commit("main")
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge", "side")
    head = repository.git("rev-parse", "HEAD")
    names = [commit.id for commit in GitStore.open(repository.path).first_parents(head)]
    assert names == repository.git("rev-list", "--first-parent", "HEAD").split()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("skewed", [False, True])
def test_ancestry_agrees_with_git_on_random_histories(repository, seed, skewed):
    """Histories with merges, criss-cross merges and, if `skewed`, clocks that run backwards."""
    dice = random.Random(seed)
    tree = repository.git("mktree")
    names = [repository.commit_tree(tree)]
    for _ in range(14):
        if skewed:
            repository.clock += dice.randint(-1000, 1000)
        parents = dice.sample(names[-5:], k=min(len(names[-5:]), dice.choice((1, 2, 2, 3))))
        names.append(repository.commit_tree(tree, *parents))
    names.append(repository.commit_tree(tree))  # an unrelated root
    store = GitStore.open(repository.path)
    reachable = {name: set(repository.git("rev-list", name).split()) for name in names}
    for left, right in itertools.product(names, repeat=2):
        assert store.is_ancestor(left, right) == (left in reachable[right])
        common = reachable[left] & reachable[right]
        best = {n for n in common if not any(n in reachable[o] for o in common if o != n)}
        assert set(store.merge_bases(left, right)) == best
        assert store.merge_base(left, right) in (best or {None})
    left, right = names[-3], names[-2]
    assert set(store.merge_bases(left, right)) == set(
        repository.git("merge-base", "--all", left, right).split()
    )


def test_merge_base_of_a_pull_request_agrees_with_git(repository):
    base = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "--quiet", "-b", "topic")
    topic = repository.commit("topic")
    repository.git("checkout", "--quiet", "main")
    main = repository.commit("main")
    store = GitStore.open(repository.path)
    assert store.merge_base(main, topic) == base == repository.git("merge-base", main, topic)
    assert store.merge_base(main, main) == main
    assert store.merge_base(base, topic) == base


def test_ancestry_of_an_absent_commit(repository):
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(repository.path).is_ancestor("12" * 20, repository.git("rev-parse", "HEAD"))
    assert error.value.code == "object-missing"


def build_tree(repository, files):
    """Return the tree that git itself writes for these files."""
    repository.git("read-tree", "--empty")
    for path, content in files.items():
        blob = repository.blob(content)
        repository.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    return repository.git("write-tree")


def test_walk_agrees_with_ls_tree(repository):
    files = {"a/b/c.json": b"1", "a/b.json": b"2", "a.json": b"3", "a-b": b"4", "z/y": b"5"}
    tree = build_tree(repository, files)
    listed = repository.git("ls-tree", "-r", tree).splitlines()
    store = GitStore.open(repository.path)
    walked = list(store.walk(tree))
    assert [f"{f.mode:o} blob {f.id}\t{f.path}" for f in walked] == listed
    assert next(store.walk(tree, prefix="evidence")).path == "evidence/a-b"
    assert store.read_blob(store.lookup(tree, "a/b/c.json")) == b"1"
    assert [entry.kind for entry in store.read_tree(tree)] == ["blob", "blob", "tree", "tree"]


def test_changed_paths_agree_with_diff_tree(repository):
    shared = {"a/x": b"1", "same/deep/z": b"3", "c": b"c"}
    old = build_tree(repository, shared | {"a/y": b"2", "b/x": b"1", "turns": b"file"})
    new = build_tree(repository, shared | {"a/y": b"9", "d/x": b"1", "turns/in": b"below"})
    store = GitStore.open(repository.path)
    for left, right in ((old, new), (new, old), (old, old)):
        before = {file.path: file for file in store.walk(left)}
        after = {file.path: file for file in store.walk(right)}
        changes = {change.path: change for change in store.changed_paths(left, right)}
        names = repository.git("diff-tree", "-r", "--no-renames", "--name-only", left, right)
        assert sorted(changes) == sorted(names.split())
        for path, change in changes.items():
            assert (change.old, change.new) == (before.get(path), after.get(path))
    added = list(store.changed_paths(None, old))
    assert [change.new for change in added] == list(store.walk(old))
    assert all(change.old is None for change in added)
    assert all(change.new is None for change in store.changed_paths(old, None))


def test_equal_subtrees_are_not_read(repository):
    absent = "12" * 20
    blob, other = repository.blob(b"1"), repository.blob(b"2")
    left = repository.tree((FILE, b"a", blob), (DIRECTORY, b"gone", absent))
    right = repository.tree((FILE, b"a", other), (DIRECTORY, b"gone", absent))
    (change,) = GitStore.open(repository.path).changed_paths(left, right, prefix="e")
    assert change == Change(
        "e/a", TreeFile("e/a", 0o100644, blob), TreeFile("e/a", 0o100644, other)
    )


def test_change_of_mode_alone_is_a_change(repository):
    blob = repository.blob(b"1")
    left = repository.tree((FILE, b"a", blob))
    right = repository.tree((b"100755", b"a", blob))
    (change,) = GitStore.open(repository.path).changed_paths(left, right)
    assert change.old and change.new
    assert (change.old.mode, change.new.mode) == (0o100644, 0o100755)
