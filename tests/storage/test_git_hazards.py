"""The odd and hostile repositories of the hazard table, in its order, one test or more a row."""

import os
import random
import subprocess
import unicodedata

import pygit2
import pytest

from perfdb_git.errors import InvalidInputError, PerfdbError, RepositoryUnavailableError
from perfdb_git.storage.git import GitStore, ReadLimits, find_twins

FILE, DIRECTORY = b"100644", b"40000"
SMALL = ReadLimits(max_entries=10_000)


def refused(error, code, *words):
    """Check an error's code, and that its message and remedy name what matters."""
    assert error.value.code == code
    assert error.value.remedy
    for word in words:
        assert word in str(error.value)


def walk_error(repository, tree, **options):
    with pytest.raises(PerfdbError) as error:
        list(GitStore.open(repository.path).walk(tree, **options))
    return error


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_other_owner_is_refused_with_the_remedy_and_safe_directory_is_obeyed(repository, git_home):
    os.chown(repository.path, 12345, 12345)
    os.chown(repository.git_directory, 12345, 12345)
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(repository.path)
    refused(error, "unsafe-owner", f"--add safe.directory '{repository.path}'")
    (git_home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {repository.path}\n")
    assert GitStore.open(repository.path).resolve_revision("main")


def test_symlink_is_refused(repository):
    target = repository.blob(b"/etc/passwd")
    tree = repository.tree((b"120000", b"link.json", target))
    refused(walk_error(repository, tree, prefix="evidence"), "symlink", "evidence/link.json")


def test_symlink_in_place_of_the_evidence_folder_is_refused(repository):
    tree = repository.tree((b"120000", b"evidence", repository.blob(b"/tmp")))
    with pytest.raises(InvalidInputError) as error:
        GitStore.open(repository.path).lookup(tree, "evidence/records")
    refused(error, "symlink", "evidence")


def test_submodule_is_refused_even_when_the_object_is_present(repository):
    tree = repository.tree((b"160000", b"module", repository.git("rev-parse", "HEAD")))
    refused(walk_error(repository, tree), "submodule", "module")
    with pytest.raises(InvalidInputError) as error:
        GitStore.open(repository.path).lookup(tree, "module")
    refused(error, "submodule")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(b"a\nb", id="newline"),
        pytest.param(b"a\x1b[31mb", id="escape"),
        pytest.param(b"a\xff.json", id="not-utf8"),
        pytest.param("é.json".encode(), id="not-ascii"),
        pytest.param(b".", id="dot"),
        pytest.param(b"..", id="dot-dot"),
        pytest.param(b".git", id="dot-git"),
        pytest.param(b".GiT", id="dot-git-in-capitals"),
        pytest.param(b"a/b", id="embedded-slash"),
        pytest.param(b"a\\b", id="backslash"),
        pytest.param(b"a b", id="space"),
        pytest.param(b"a:b", id="colon"),
        pytest.param(b"-rf", id="leading-dash"),
        pytest.param(b"a" * 201, id="201-bytes"),
        pytest.param(b"a" * 300, id="300-bytes"),
    ],
)
def test_odd_name_is_refused_and_escaped(repository, name):
    tree = repository.tree((FILE, name, repository.blob(b"{}")))
    error = walk_error(repository, tree, prefix="evidence")
    refused(error, "odd-name", "evidence/")
    assert str(error.value).isprintable()
    assert str(error.value).isascii()


def test_empty_name_is_refused(repository):
    tree = repository.tree((FILE, b"", repository.blob(b"{}")))
    refused(walk_error(repository, tree), "tree-malformed")


@pytest.mark.parametrize(
    "name", [b"a" * 200, b"a.json", b".gitattributes", b"A_b-c+d=e@f.0", b"...", b".github"]
)
def test_ordinary_name_is_accepted(repository, name):
    tree = repository.tree((FILE, name, repository.blob(b"{}")))
    assert [f.path for f in GitStore.open(repository.path).walk(tree)] == [name.decode()]


def test_odd_names_outside_the_evidence_do_not_stop_a_lookup(repository):
    blob = repository.blob(b"{}")
    records = repository.tree((FILE, b"one.json", blob))
    evidence = repository.tree((b"120000", b"link", blob), (DIRECTORY, b"records", records))
    tree = repository.tree(
        (FILE, b"a\nb", blob), (FILE, b"a\xff", blob), (DIRECTORY, b"evidence", evidence)
    )
    store = GitStore.open(repository.path)
    assert store.lookup(tree, "evidence/records") == records
    assert store.lookup(tree, "evidence/records/one.json") == blob
    assert store.lookup(tree, "evidence/records/one.json/deeper") is None
    assert store.lookup(tree, "evidence/absent") is None
    for odd in ("../x", "evidence//x", "", "/evidence"):
        with pytest.raises(InvalidInputError):
            store.lookup(tree, odd)


def test_duplicate_name_is_refused(repository):
    one, two = repository.blob(b"1"), repository.blob(b"2")
    tree = repository.tree((FILE, b"a", one), (FILE, b"a", two))
    refused(walk_error(repository, tree), "duplicate-name", "a")
    with pytest.raises(InvalidInputError) as error:
        GitStore.open(repository.path).lookup(tree, "a")
    refused(error, "duplicate-name")


def test_file_and_directory_of_one_name_is_refused(repository):
    blob = repository.blob(b"1")
    below = repository.tree((FILE, b"x", blob))
    # "a.b" sorts between the file "a" and the directory "a/", so the twins are not neighbours.
    tree = repository.tree((FILE, b"a", blob), (FILE, b"a.b", blob), (DIRECTORY, b"a", below))
    refused(walk_error(repository, tree), "duplicate-name", "a")


def test_unsorted_tree_is_refused(repository):
    blob = repository.blob(b"1")
    tree = repository.tree((FILE, b"b", blob), (FILE, b"a", blob))
    refused(walk_error(repository, tree), "unsorted-tree", "a")


@pytest.mark.parametrize("mode", [b"0", b"100600", b"100664", b"0100644", b"040000", b"100000"])
def test_odd_mode_is_refused(repository, mode):
    tree = repository.tree((mode, b"a.json", repository.blob(b"{}")))
    refused(walk_error(repository, tree), "odd-mode", "a.json", mode.decode())


@pytest.mark.parametrize("cut", [1, 20, 25])
def test_truncated_tree_is_refused(repository, cut):
    raw = b"100644 a.json\0" + bytes.fromhex(repository.blob(b"{}"))
    tree = repository.git(
        "hash-object", "-t", "tree", "--literally", "-w", "--stdin", data=raw[:-cut]
    )
    refused(walk_error(repository, tree), "tree-malformed")


def test_type_lies_are_found_on_reading(repository):
    blob = repository.blob(b"not a tree")
    tree = repository.tree((DIRECTORY, b"lie", blob))
    refused(walk_error(repository, tree), "object-type-mismatch", "lie")
    inner = repository.tree((FILE, b"x", blob))
    tree = repository.tree((FILE, b"lie.json", inner))
    store = GitStore.open(repository.path)
    (file,) = store.walk(tree)
    for read in (store.read_blob, store.blob_size):
        with pytest.raises(RepositoryUnavailableError) as error:
            read(file.id, path=file.path)
        refused(error, "object-type-mismatch", "lie.json")
    with pytest.raises(RepositoryUnavailableError) as error:
        store.read_commit(blob)
    refused(error, "object-type-mismatch")


def test_missing_blob_and_missing_tree_are_named(repository):
    absent = "12" * 20
    tree = repository.tree((FILE, b"gone.json", absent))
    store = GitStore.open(repository.path)
    (file,) = store.walk(tree)
    with pytest.raises(RepositoryUnavailableError) as error:
        store.read_blob(file.id, path=file.path)
    refused(error, "object-missing", absent, "gone.json", str(store.git_directory))
    tree = repository.tree((DIRECTORY, b"gone", absent))
    refused(walk_error(repository, tree), "object-missing", "gone")


def test_case_and_normal_form_twins_are_reported(repository):
    blob = repository.blob(b"1")
    tree = repository.tree((FILE, b"A.json", blob), (FILE, b"a.json", blob))
    paths = [file.path for file in GitStore.open(repository.path).walk(tree)]
    assert find_twins(paths) == (("A.json", "a.json"),)
    assert find_twins(["d/x", "D/y", "e/x"]) == (("D", "d"),)
    composed = unicodedata.normalize("NFC", "é")
    decomposed = unicodedata.normalize("NFD", "É")
    assert find_twins([composed, decomposed]) == ((decomposed, composed),)
    assert find_twins(["a/b", "a/c", "ab"]) == ()


def test_autocrlf_export_ignore_and_export_subst_do_not_change_what_is_read(repository):
    repository.git("config", "core.autocrlf", "true")
    content = b"$Format:%H$\nline\n"
    attributes = b"*.json export-subst eol=crlf ident\n*.txt export-ignore\n"
    files = {".gitattributes": attributes, "e/a.json": content, "e/b.txt": content}
    repository.commit("attributes", files)
    store = GitStore.open(repository.path)
    tree = store.read_commit(store.resolve_revision("HEAD").commit).tree
    read = dict(store.read_blobs(store.walk(tree)))
    assert {f.path: c for f, c in read.items() if f.path.startswith("e/")} == {
        "e/a.json": content,
        "e/b.txt": content,
    }


def test_big_blob_of_zeros_is_refused_from_its_header(repository, tmp_path):
    zeros = tmp_path / "zeros"
    with zeros.open("wb") as file:
        file.truncate(80_000_000)
    blob = repository.git("-c", "core.compression=1", "hash-object", "-w", str(zeros))
    zeros.unlink()
    store = GitStore.open(repository.path)
    assert store.blob_size(blob) == 80_000_000
    with pytest.raises(InvalidInputError) as error:
        store.read_blob(blob, path="evidence/zeros.json")
    refused(error, "blob-too-large", "evidence/zeros.json", "80000000")


def test_sum_of_blobs_is_capped(repository):
    blob = repository.blob(b"x" * 1000)
    tree = repository.tree(*[(FILE, b"%d" % i, blob) for i in range(5)])
    store = GitStore.open(repository.path)
    with pytest.raises(InvalidInputError) as error:
        list(store.read_blobs(store.walk(tree), limits=ReadLimits(max_total_bytes=2500)))
    refused(error, "too-many-bytes", "2500")


def test_tree_bomb_is_refused(repository):
    tree = repository.tree((FILE, b"x", repository.blob(b"1")))
    for _ in range(9):
        tree = repository.tree(*[(DIRECTORY, b"%d" % i, tree) for i in range(10)])
    refused(walk_error(repository, tree, limits=SMALL), "too-many-entries", "10000")
    store = GitStore.open(repository.path)
    with pytest.raises(InvalidInputError) as error:
        list(store.changed_paths(None, tree, limits=SMALL))
    refused(error, "too-many-entries")


def test_tree_bomb_of_empty_directories_is_refused(repository):
    tree = repository.git("mktree")
    for _ in range(9):
        tree = repository.tree(*[(DIRECTORY, b"%d" % i, tree) for i in range(10)])
    refused(walk_error(repository, tree, limits=SMALL), "too-many-entries")


def test_deep_and_wide_directories_are_refused(repository):
    blob = repository.blob(b"1")
    tree = repository.tree((FILE, b"x", blob))
    for _ in range(14):
        tree = repository.tree((DIRECTORY, b"d", tree))
    refused(walk_error(repository, tree), "too-deep", "d/d/d")
    wide = repository.tree(*[(FILE, b"%04d" % i, blob) for i in range(300)])
    for maximum, code in ((299, "directory-too-large"), (30, "tree-too-large")):
        limits = ReadLimits(max_directory_entries=maximum)
        refused(walk_error(repository, wide, limits=limits), code)


def shallow_clone(repository, tmp_path):
    repository.commit("second")
    repository.commit("third")
    clone = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth=2", repository.path.as_uri(), str(clone))
    return clone


def test_shallow_clone_answers_values_and_refuses_ancestry(repository, tmp_path):
    store = GitStore.open(shallow_clone(repository, tmp_path))
    assert store.is_shallow
    head = store.resolve_revision("HEAD").commit
    boundary = store.resolve_revision("HEAD~1").commit
    assert store.lookup(store.read_commit(head).tree, "evidence/records")
    assert store.read_commit(boundary).parents == (repository.git("rev-parse", "HEAD~2"),)
    for ask in (
        lambda: store.is_ancestor(boundary, head),
        lambda: store.merge_base(boundary, head),
        store.require_complete_history,
        lambda: store.resolve_revision("HEAD~2"),
        lambda: list(store.first_parents(head)),
    ):
        with pytest.raises(RepositoryUnavailableError) as error:
            ask()
        refused(error, "shallow-history", "--unshallow")


def test_shallow_is_seen_from_a_linked_worktree(repository, tmp_path):
    clone = shallow_clone(repository, tmp_path)
    subprocess.run(
        ["git", "-C", str(clone), "worktree", "add", "-q", "--detach", str(tmp_path / "linked")],
        check=True,
        capture_output=True,
    )
    assert GitStore.open(tmp_path / "linked").is_shallow


@pytest.mark.parametrize("kind", ["blob:none", "tree:0"])
def test_partial_clone_never_fetches(repository, tmp_path, kind):
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
    clone = tmp_path / "partial"
    url = repository.path.as_uri()
    repository.git("clone", "-q", "--bare", f"--filter={kind}", url, str(clone))
    before = sorted(clone.glob("objects/**/*"))
    store = GitStore.open(clone)
    commit = store.read_commit(store.resolve_revision("HEAD").commit)
    with pytest.raises(RepositoryUnavailableError) as error:
        list(store.read_blobs(store.walk(commit.tree)))
    refused(error, "object-missing", "partial clone", "--filter")
    assert sorted(clone.glob("objects/**/*")) == before


def test_sha256_repository_is_refused(new_repository):
    repository = new_repository("sha256", "--object-format=sha256")
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(repository.path)
    refused(error, "sha256-repository", "SHA-1")


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("extensions.refStorage", "reftable", "reftable-repository"),
        ("extensions.partialClone", "origin", "partial-clone-extension"),
        ("extensions.shinyNewThing", "true", "unknown-extension"),
        ("core.repositoryFormatVersion", "2", "unsupported-format-version"),
        ("extensions.preciousObjects", "true", None),
        ("extensions.worktreeConfig", "true", None),
    ],
)
def test_extensions(repository, key, value, code):
    settings = {"core.repositoryFormatVersion": "1", key: value}
    with (repository.git_directory / "config").open("a") as file:
        for name, setting in settings.items():
            section, _, variable = name.partition(".")
            file.write(f"[{section}]\n\t{variable} = {setting}\n")
    if code is None:
        assert GitStore.open(repository.path).resolve_revision("HEAD")
        return
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(repository.path)
    refused(error, code)


def test_broken_config_is_refused(repository):
    (repository.git_directory / "config").write_text("[core\n")
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(repository.path)
    refused(error, "repository-unreadable")


def test_replace_refs_do_not_forge_history(repository):
    first = repository.git("rev-parse", "HEAD")
    second = repository.commit("second", {"README.md": b"changed\n"})
    forged = repository.commit_tree(repository.git("mktree"))
    repository.git("replace", second, forged)
    assert repository.git("rev-parse", f"{second}^{{tree}}") != repository.git(
        "--no-replace-objects", "rev-parse", f"{second}^{{tree}}"
    )
    store = GitStore.open(repository.path)
    assert store.read_commit(second).parents == (first,)
    assert store.resolve_revision("HEAD~1").commit == first
    assert store.is_ancestor(first, second)


def test_grafts_do_not_forge_history_and_ancestry_is_refused(repository):
    first = repository.git("rev-parse", "HEAD")
    second = repository.commit("second")
    grafts = repository.git_directory / "info" / "grafts"
    grafts.parent.mkdir(exist_ok=True)
    grafts.write_text(f"{second}\n")
    store = GitStore.open(repository.path)
    assert store.read_commit(second).parents == (first,)
    assert store.resolve_revision("HEAD~1").commit == first
    assert [commit.id for commit in store.first_parents(second)] == [second, first]
    with pytest.raises(RepositoryUnavailableError) as error:
        store.is_ancestor(first, second)
    refused(error, "grafted-history", "grafts")


def test_alternates_are_followed_and_named_when_gone(repository, tmp_path):
    borrower = tmp_path / "borrower"
    repository.git("clone", "--quiet", "--shared", str(repository.path), str(borrower))
    store = GitStore.open(borrower)
    head = store.resolve_revision("HEAD").commit
    assert list(store.walk(store.read_commit(head).tree))
    repository.git_directory.rename(tmp_path / "moved")
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(borrower).resolve_revision("main")
    refused(error, "object-missing", "alternates")


def test_linked_worktree_git_file_bare_and_subfolder_all_open(repository, tmp_path):
    repository.git("branch", "other")
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"), "other")
    bare = tmp_path / "bare.git"
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(bare))
    pointer = tmp_path / "pointer"
    pointer.mkdir()
    (pointer / ".git").write_text(f"gitdir: {repository.git_directory}\n")
    expected = repository.git("rev-parse", "HEAD")
    real = repository.git_directory
    for path, git_directory, work_tree in (
        (repository.path, real, repository.path),
        (str(repository.path / "evidence" / "records"), real, repository.path),
        (real, real, repository.path),
        (tmp_path / "linked", real / "worktrees" / "linked", tmp_path / "linked"),
        (pointer, real, pointer),
        (bare, bare, None),
    ):
        store = GitStore.open(path)
        assert store.git_directory == git_directory
        assert store.is_bare == (work_tree is None)
        if path != pointer:  # which of the two folders is the work tree is libgit2's choice
            assert store.work_tree == work_tree
        assert store.resolve_revision("HEAD").commit == expected
        assert not store.is_shallow


def test_not_a_repository(tmp_path):
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(RepositoryUnavailableError) as error:
            GitStore.open(path)
        refused(error, "not-a-repository", str(path))
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(tmp_path)
    assert error.value.remedy


def test_git_dir_in_the_environment_is_ignored(repository, new_repository, monkeypatch):
    other = new_repository("other")
    other.commit("elsewhere")
    monkeypatch.setenv("GIT_DIR", str(other.git_directory))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other.git_directory / "objects"))
    store = GitStore.open(repository.path)
    assert store.git_directory == repository.git_directory
    assert store.resolve_revision("HEAD").commit == repository.git("rev-parse", "HEAD")


def test_swapped_loose_object_is_refused(repository):
    good, evil = repository.blob(b"1 ms\n"), repository.blob(b"9 ms\n")
    path = repository.loose(good)
    path.chmod(0o644)
    path.write_bytes(repository.loose(evil).read_bytes())
    assert repository.run("cat-file", "blob", good) == b"9 ms\n"  # git itself serves it
    pygit2.settings.enable_strict_hash_verification(False)  # opening turns it on again
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(repository.path).read_blob(good, path="a.json")
    refused(error, "object-corrupt", good, "a.json", "fsck")


def test_swapped_loose_tree_and_commit_are_refused(repository):
    first = repository.git("rev-parse", "HEAD")
    second = repository.commit("second", {"README.md": b"other\n"})
    for suffix in ("^{tree}", ""):  # trees first: git must still read the commits
        old = repository.git("rev-parse", first + suffix)
        new = repository.git("rev-parse", second + suffix)
        path = repository.loose(new)
        path.chmod(0o644)
        path.write_bytes(repository.loose(old).read_bytes())
        store = GitStore.open(repository.path)
        with pytest.raises(RepositoryUnavailableError) as error:
            store.read_tree(new) if suffix else store.resolve_revision("HEAD")
        refused(error, "object-corrupt", new)


def test_bit_flip_in_a_pack_is_refused(repository):
    content = random.Random(0).randbytes(
        4096
    )  # stored as it is, so that the flip lands in this blob
    commit = repository.commit("noise", {"noise.bin": content})
    blob = repository.git("rev-parse", f"{commit}:noise.bin")
    repository.git("repack", "-a", "-d", "-q")
    (pack,) = repository.git_directory.glob("objects/pack/*.pack")
    raw = bytearray(pack.read_bytes())
    raw[raw.index(content[1000:1032])] ^= 1
    pack.chmod(0o644)
    pack.write_bytes(raw)
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(repository.path).read_blob(blob, path="noise.bin")
    refused(error, "object-corrupt", blob)


def test_hostile_config_runs_nothing(repository, tmp_path):
    marker = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    script.chmod(0o755)
    attributes = b"* filter=evil diff=evil\n"
    first = repository.commit("attributes", {".gitattributes": attributes, "e/a.json": b"1\n"})
    with (repository.git_directory / "config").open("a") as file:
        file.write(
            f"[core]\n\tfsmonitor = {script}\n\thooksPath = {tmp_path}\n\tpager = {script}\n"
            f"\tsshCommand = {script}\n\teditor = {script}\n"
            f'[diff "evil"]\n\ttextconv = {script}\n\tcommand = {script}\n'
            f'[filter "evil"]\n\tclean = {script}\n\tsmudge = {script}\n\tprocess = {script}\n'
            f"[gpg]\n\tprogram = {script}\n[commit]\n\tgpgSign = true\n"
            f"[diff]\n\texternal = {script}\n[user]\n\tname = N\n\temail = e@example.org\n"
        )
    for hook in ("pre-commit", "post-commit", "reference-transaction", "commit-msg"):
        (tmp_path / hook).write_bytes(script.read_bytes())
        (tmp_path / hook).chmod(0o755)
    store = GitStore.open(repository.path)
    tree = store.read_commit(store.resolve_revision("HEAD").commit).tree
    assert dict(store.read_blobs(store.walk(tree)))
    second = store.commit_files({"e/b.json": b"2\n"}, message="add")
    new_tree = store.read_commit(second).tree
    assert [change.path for change in store.changed_paths(tree, new_tree)] == ["e/b.json"]
    assert store.merge_base(first, second) == first
    assert not marker.exists()
    repository.git("status", "--short")
    assert marker.exists()  # the judge: the config is indeed live


def test_not_a_full_id_is_a_mistake_of_the_caller(repository):
    store = GitStore.open(str(repository.path))
    for text in ("", "abc", "HEAD", "A" * 40, "0" * 41):
        with pytest.raises(ValueError, match="full object id"):
            store.read_blob(text)
