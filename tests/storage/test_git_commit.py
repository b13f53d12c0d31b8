"""Commits made by the package: only the named paths change, and nothing staged is lost."""

import pytest

from perfdb_git.errors import InvalidInputError, RepositoryUnavailableError, UsageError
from perfdb_git.storage.git import GitStore

NEW = {"evidence/records/a100/gemm/two.json": b"{}\r\n", "evidence/manifests/m.json": b"1\n"}


@pytest.fixture
def mine(repository):
    """Return a repository with an identity of its own."""
    repository.git("config", "user.name", "Nora")
    repository.git("config", "user.email", "nora@example.org")
    return repository


def write_all(repository, files):
    for path, content in files.items():
        repository.write(path, content)


def test_commit_adds_exactly_these_files_and_status_is_clean(mine):
    first = mine.git("rev-parse", "HEAD")
    mine.write("README.md", b"edited, not staged\n")
    mine.write("staged.txt", b"staged\n")
    mine.git("add", "staged.txt")
    store = GitStore.open(mine.path)
    commit = store.commit_files(NEW, message="Add records")
    write_all(mine, NEW)
    assert mine.git("rev-parse", "HEAD") == commit
    assert store.read_commit(commit).parents == (first,)
    assert store.read_commit(commit).author == "Nora <nora@example.org>"
    assert mine.git("log", "-1", "--format=%s %cn") == "Add records Nora"
    assert mine.git("diff-tree", "-r", "--name-status", first, commit).split() == [
        "A", "evidence/manifests/m.json", "A", "evidence/records/a100/gemm/two.json",
    ]  # fmt: skip
    for path, content in NEW.items():
        assert mine.run("cat-file", "blob", f"{commit}:{path}") == content
    assert mine.git("status", "--porcelain").splitlines() == ["M README.md", "A  staged.txt"]
    mine.git("fsck", "--strict")
    assert "Add records" in mine.git("reflog", "-1")


def test_status_is_clean_with_autocrlf(mine):
    mine.git("config", "core.autocrlf", "true")
    files = {"evidence/a.json": b"{}\n"}
    GitStore.open(mine.path).commit_files(files, message="x")
    write_all(mine, files)
    assert mine.git("status", "--porcelain") == ""


def test_replacing_a_file_keeps_its_mode_and_every_odd_neighbour(mine):
    blob = mine.blob(b"old")
    evidence = mine.tree(
        (b"100755", b"a.sh", blob), (b"100664", b"odd mode", blob), (b"120000", b"z\xff", blob)
    )
    root = mine.tree((b"40000", b"evidence", evidence), (b"100664", b"x", blob))
    mine.git("update-ref", "refs/heads/odd", mine.commit_tree(root))
    files = {"evidence/a.sh": b"new", "evidence/b/c/d.json": b"{}"}
    store = GitStore.open(mine.path)
    commit = store.commit_files(files, message="x", branch="odd")
    raw = mine.run("cat-file", "tree", f"{commit}:evidence")
    for entry in (b"100664 odd mode\0", b"120000 z\xff\0"):
        assert entry + bytes.fromhex(blob) in raw
    assert raw.startswith(b"100755 a.sh\0" + bytes.fromhex(mine.blob(b"new")))
    assert mine.run("cat-file", "blob", f"{commit}:evidence/b/c/d.json") == b"{}"
    assert mine.git("status", "--porcelain") == ""  # another branch: the index stays as it was


def test_first_commit_of_a_new_repository(new_repository):
    made = new_repository()
    made.git("config", "user.name", "Nora")
    made.git("config", "user.email", "nora@example.org")
    commit = GitStore.open(made.path).commit_files(NEW, message="x")
    write_all(made, NEW)
    assert made.git("rev-parse", "main") == commit
    assert made.git("status", "--porcelain") == ""
    made.git("fsck", "--strict")


def test_bare_repository_and_detached_head(mine, new_repository, tmp_path):
    mine.git("clone", "--quiet", "--bare", str(mine.path), str(tmp_path / "bare"))
    bare = GitStore.open(tmp_path / "bare")
    bare._repository.config["user.name"] = "Nora"
    bare._repository.config["user.email"] = "nora@example.org"
    commit = bare.commit_files(NEW, message="x", branch="refs/heads/main")
    assert bare.resolve_revision("main").commit == commit
    mine.git("checkout", "--quiet", "--detach")
    commit = GitStore.open(mine.path).commit_files(NEW, message="x")
    write_all(mine, NEW)
    assert mine.git("rev-parse", "HEAD") == commit != mine.git("rev-parse", "main")
    assert mine.git("status", "--porcelain") == ""


def test_no_identity(repository):
    with pytest.raises(UsageError, match=r"git config user\.name") as error:
        GitStore.open(repository.path).commit_files(NEW, message="x")
    assert error.value.code == "no-identity"


class MovesHead(dict):
    """Files whose content is asked for after the tip was read: HEAD moves just then."""

    def __init__(self, repository, files):
        super().__init__(files)
        self.repository = repository

    def __getitem__(self, path):
        self.repository.commit("meanwhile")
        return super().__getitem__(path)


def test_head_that_moved_meanwhile_is_not_overwritten(mine):
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(mine.path).commit_files(MovesHead(mine, NEW), message="x")
    assert error.value.code == "head-moved"
    assert mine.git("log", "-1", "--format=%s") == "meanwhile"
    assert mine.git("status", "--porcelain") == ""


def test_first_commit_is_not_overwritten_either(new_repository):
    made = new_repository()
    made.git("config", "user.name", "Nora")
    made.git("config", "user.email", "nora@example.org")
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(made.path).commit_files(MovesHead(made, NEW), message="x")
    assert error.value.code == "head-moved"
    assert made.git("log", "-1", "--format=%s") == "meanwhile"


@pytest.mark.parametrize("how", ["other content", "removed", "intent", "conflict", "file above"])
def test_staged_changes_are_never_lost(mine, how):
    path = "evidence/records/a100/gemm/one.json"
    files = {path: b"committed\n"}
    if how == "other content":
        mine.write(path, b"staged\n")
        mine.git("add", path)
    elif how == "removed":
        mine.git("rm", "--cached", "--quiet", path)
    elif how == "intent":
        path = "evidence/new.json"
        files = {path: b"committed\n"}
        mine.write(path, b"meant\n")
        mine.git("add", "--intent-to-add", path)
    elif how == "conflict":
        blob = mine.blob(b"x")
        lines = "".join(f"100644 {blob} {stage}\t{path}\n" for stage in (1, 2, 3))
        mine.git("update-index", "--index-info", data=f"0 {'0' * 40}\t{path}\n{lines}".encode())
    else:
        mine.git("update-index", "--add", "--cacheinfo", f"100644,{mine.blob(b'x')},evidence/f")
        files = {"evidence/f/one.json": b"committed\n"}
    before = mine.git("rev-parse", "HEAD"), mine.git("ls-files", "--stage")
    with pytest.raises(UsageError) as error:
        GitStore.open(mine.path).commit_files(files, message="x")
    assert error.value.code == "already-staged"
    assert (mine.git("rev-parse", "HEAD"), mine.git("ls-files", "--stage")) == before


def test_path_already_staged_with_the_same_content_is_fine(mine):
    write_all(mine, NEW)
    mine.git("add", ".")
    GitStore.open(mine.path).commit_files(NEW, message="x")
    assert mine.git("status", "--porcelain") == ""


def test_index_locked_by_another_command_is_reported_after_the_commit(mine):
    (mine.git_directory / "index.lock").write_bytes(b"")
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(mine.path).commit_files(NEW, message="x")
    assert error.value.code == "index-locked"
    assert mine.git("rev-parse", "HEAD") in error.value.message


def test_nothing_to_commit(mine):
    store = GitStore.open(mine.path)
    store.commit_files(NEW, message="x")
    head = mine.git("rev-parse", "HEAD")
    with pytest.raises(UsageError) as error:
        store.commit_files(NEW, message="x")
    assert error.value.code == "nothing-to-commit"
    assert mine.git("rev-parse", "HEAD") == head


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"../outside.json": b""}, "odd-name"),
        ({".git/config": b""}, "odd-name"),
        ({"/etc/passwd": b""}, "odd-name"),
        ({"a//b": b""}, "odd-name"),
        ({"evidence": b""}, "path-conflict"),
        ({"README.md/x": b""}, "path-conflict"),
        ({"n/a": b"", "n/a/b": b""}, "path-conflict"),
    ],
)
def test_odd_and_conflicting_paths_are_refused(mine, files, code):
    before = mine.git("rev-parse", "HEAD")
    with pytest.raises((InvalidInputError, UsageError)) as error:
        GitStore.open(mine.path).commit_files(files, message="x")
    assert error.value.code in {code, "already-staged"}
    assert mine.git("rev-parse", "HEAD") == before


def test_symlink_is_not_replaced(mine):
    root = mine.tree((b"120000", b"link", mine.blob(b"/tmp")))
    mine.git("update-ref", "refs/heads/links", mine.commit_tree(root))
    for path in ("link", "link/x.json"):
        with pytest.raises(InvalidInputError) as error:
            GitStore.open(mine.path).commit_files({path: b"x"}, message="x", branch="links")
        assert error.value.code == "path-conflict"


@pytest.mark.parametrize(("files", "message"), [({}, "x"), (NEW, "  "), (NEW, "a\0b")])
def test_empty_requests_are_refused(mine, files, message):
    with pytest.raises(UsageError) as error:
        GitStore.open(mine.path).commit_files(files, message=message)
    assert error.value.code == "empty-commit"


@pytest.mark.parametrize("branch", ["nope", "refs/tags/t", "a..b"])
def test_unknown_branch(mine, branch):
    mine.git("tag", "t")
    with pytest.raises(UsageError) as error:
        GitStore.open(mine.path).commit_files(NEW, message="x", branch=branch)
    assert error.value.code == "unknown-branch"
