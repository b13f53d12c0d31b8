"""What a revision may be, what it means, and what is refused; ``git rev-parse`` is the judge."""

import hashlib

import pytest

from perfdb_git.errors import RepositoryUnavailableError
from perfdb_git.storage.git import GitStore


@pytest.fixture
def history(repository):
    """Return main with a merge of two sides, tags, a remote branch and packed references."""
    repository.commit("second")
    repository.git("checkout", "--quiet", "-b", "topic/side", "HEAD~1")
    repository.commit("side")
    repository.git("checkout", "--quiet", "main")
    repository.clock += 60
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge", "topic/side")
    repository.commit("last")
    repository.git("tag", "light")
    repository.git("tag", "-a", "-m", "annotated", "v1", "HEAD~1")
    repository.git("tag", "-a", "-m", "nested", "v1-nested", "v1")
    repository.git("update-ref", "refs/remotes/origin/dev", "HEAD~2")
    repository.git("update-ref", "refs/pull/7/head", "HEAD~1")
    repository.git("pack-refs", "--all")
    return repository


ACCEPTED = [
    "HEAD", "main", "topic/side", "light", "v1", "v1-nested", "origin/dev", "refs/heads/main",
    "refs/tags/v1", "refs/remotes/origin/dev", "refs/pull/7/head", "heads/main", "tags/v1",
    "HEAD~", "HEAD~0", "HEAD~1", "HEAD~~", "HEAD~2", "HEAD^", "HEAD^0", "HEAD^1", "HEAD~1^2",
    "main~1^2~1", "HEAD^^2", "v1^0", "v1-nested^2", "main^^^", "refs/heads/main~1",
]  # fmt: skip


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted_revisions_agree_with_git(history, text):
    resolved = GitStore.open(history.path).resolve_revision(text)
    assert resolved.commit == history.git("rev-parse", f"{text}^{{commit}}")
    assert resolved.text == text
    assert resolved.warnings == ()


def test_hashes_and_abbreviations(history):
    full = history.git("rev-parse", "HEAD")
    store = GitStore.open(history.path)
    for text in (full, full.upper(), full[:7], full[:12].upper(), full[:39]):
        assert store.resolve_revision(text).commit == full
    tag = history.git("rev-parse", "v1-nested")
    for text in (tag, tag[:10], tag[:10] + "~1"):
        expected = history.git("rev-parse", f"{text}^{{commit}}")
        assert store.resolve_revision(text).commit == expected


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        ("HEAD@{1}", "reflog"),
        ("@{upstream}", "upstream"),
        ("@{-1}", "reflog"),
        ("main@{yesterday}", "date"),
        ("@", "HEAD"),
        ("@~1", "HEAD"),
        (":/first", "message search"),
        (":README.md", "index"),
        ("HEAD:README.md", "path"),
        ("-x", "option"),
        ("--all", "option"),
        ("main..topic/side", "range"),
        ("main...topic/side", "range"),
        ("^main", "excludes"),
        ("HEAD^{commit}", "^{"),
        ("HEAD^{/first}", "^{"),
        ("HEAD^@", "several"),
        ("HEAD^!", "several"),
        ("HEAD^-", "several"),
        ("HEAD~x", "series"),
        ("HEAD~1234567", "series"),
        ("main branch", "space"),
        ("main\n", "control"),
        ("ma\x00in", "control"),
        ("FETCH_HEAD", "move"),
        ("ORIG_HEAD~1", "move"),
        ("a.lock", "legal"),
        ("~1", "legal"),
        ("refs/heads/", "legal"),
        ("abc12", "7 digits"),
    ],
)
def test_refused_revisions_say_why(history, text, word):
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(history.path).resolve_revision(text)
    assert error.value.code == "revision-refused"
    assert word in error.value.message
    assert "full commit hash" in error.value.remedy
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    "text", ["nope", "refs/heads/nope", "0" * 40, "abcdef0", "HEAD^3", "HEAD~99", "light^2"]
)
def test_unknown_revisions(history, text):
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(history.path).resolve_revision(text)
    assert error.value.code == "unknown-revision"
    assert error.value.remedy


def test_branch_without_a_commit_is_unknown(new_repository):
    with pytest.raises(RepositoryUnavailableError, match="no commit yet") as error:
        GitStore.open(new_repository().path).resolve_revision("HEAD")
    assert error.value.code == "unknown-revision"


def test_tag_wins_over_a_branch_of_its_name_with_a_warning(history):
    history.git("tag", "twin", "HEAD~1")
    history.git("branch", "twin", "HEAD")
    resolved = GitStore.open(history.path).resolve_revision("twin")
    assert resolved.commit == history.git("rev-parse", "HEAD~1")
    (warning,) = resolved.warnings
    assert "refs/tags/twin" in warning
    assert "refs/heads/twin" in warning
    spelled = GitStore.open(history.path).resolve_revision("refs/heads/twin")
    assert spelled.commit == history.git("rev-parse", "HEAD")
    assert spelled.warnings == ()


def test_branch_named_like_a_short_hash_wins_with_a_warning(history):
    other = history.git("rev-parse", "HEAD~1")
    history.git("branch", other[:8], "HEAD")
    resolved = GitStore.open(history.path).resolve_revision(other[:8])
    assert resolved.commit == history.git("rev-parse", "HEAD")
    assert "abbreviated" in resolved.warnings[0]


def test_full_hash_is_always_the_object(history):
    other = history.git("rev-parse", "HEAD~1")
    history.git("update-ref", f"refs/heads/{other}", "HEAD")
    resolved = GitStore.open(history.path).resolve_revision(other)
    assert resolved.commit == other
    assert f"refs/heads/{other}" in resolved.warnings[0]


def test_branch_with_a_short_hexadecimal_name_is_a_branch(history):
    history.git("branch", "cafe", "HEAD~1")
    resolved = GitStore.open(history.path).resolve_revision("cafe")
    assert resolved.commit == history.git("rev-parse", "HEAD~1")
    assert resolved.warnings == ()


@pytest.mark.parametrize("target", ["HEAD:README.md", "HEAD^{tree}"])
@pytest.mark.parametrize("annotated", [True, False])
def test_tag_of_a_blob_or_tree_is_not_a_commit(history, target, annotated):
    history.git("tag", *(["-a", "-m", "odd"] if annotated else []), "odd", target)
    for text in ("odd", "refs/tags/odd", history.git("rev-parse", target), "odd~1"):
        with pytest.raises(RepositoryUnavailableError) as error:
            GitStore.open(history.path).resolve_revision(text)
        assert error.value.code == "not-a-commit"


def test_endless_tags_are_refused(history):
    target, kind = history.git("rev-parse", "HEAD"), "commit"
    for number in range(20):
        text = f"object {target}\ntype {kind}\ntag t{number}\ntagger A <a@b> 1 +0000\n\nx\n"
        target, kind = history.write_loose(b"tag", text.encode()), "tag"
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(history.path).resolve_revision(target)
    assert error.value.code == "not-a-commit"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("object {head}\ntype blob\ntag t\n\nx\n", "object-type-mismatch"),
        ("object {head}\ntag t\n", "tag-malformed"),
        ("", "tag-malformed"),
    ],
)
def test_lying_tags_are_refused(history, text, code):
    head = history.git("rev-parse", "HEAD")
    tag = history.write_loose(b"tag", text.format(head=head).encode())
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(history.path).resolve_revision(tag)
    assert error.value.code == code


def test_ambiguous_abbreviation(history):
    # Two objects that share 7 digits take 2**14 blobs on average: small enough to search here.
    seen = {}
    for number in range(200_000):
        content = b"%d" % number
        digest = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        if digest[:7] in seen:
            break
        seen[digest[:7]] = content
    assert history.blob(content)[:7] == history.blob(seen[digest[:7]])[:7]
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(history.path).resolve_revision(digest[:7])
    assert error.value.code == "ambiguous-revision"


@pytest.mark.parametrize("content", ["garbage\n", "ref: refs/heads/loop\n", "f" * 39 + "\n"])
def test_damaged_reference(history, content):
    (history.git_directory / "refs" / "heads" / "loop").write_text(content)
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(history.path).resolve_revision("loop")
    assert error.value.code in {"reference-corrupt", "unknown-revision"}


def test_reference_to_a_missing_object(history):
    (history.git_directory / "refs" / "heads" / "gone").write_text("12" * 20 + "\n")
    with pytest.raises(RepositoryUnavailableError) as error:
        GitStore.open(history.path).resolve_revision("gone")
    assert error.value.code == "object-missing"
    assert "gone" in str(error.value)
