"""Bad pull requests on real repositories, each refused with its finding and what to do about it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from perfdb_git.calibration.documents import document_file
from perfdb_git.calibration.splits import build_split
from perfdb_git.checks.registry import CHECKS
from perfdb_git.database import PerformanceDatabase
from perfdb_git.formats.canonical import canonical_document
from perfdb_git.model.splits import (
    BucketRange,
    BucketRule,
    KeyText,
    RecordSelection,
    SplitRecipe,
)

# Of conftest.py, which every test runner finds.
Proposal: TypeAlias = Any
Bad: TypeAlias = Callable[[Proposal], None]

GATES = "evidence/policies/gates.yaml"
POLICY = "evidence/policies/default.yaml"
PROFILE = "profiles/systems/small.yaml"
VOCABULARY = "evidence/vocabulary.yaml"
LINES = "evidence/records/*/gemm/line-*.json"

REFUSED: dict[str, tuple[set[str], Bad]] = {}


def refused(*codes: str) -> Callable[[Bad], Bad]:
    """Enter a change of the work tree that must give errors of these codes."""

    def enter(change: Bad) -> Bad:
        REFUSED[change.__name__] = (set(codes), change)
        return change

    return enter


# --- merged evidence stays as it is ---


@refused("changed-evidence")
def edited_row(p: Proposal) -> None:
    p.edit(p.file(LINES), "[8, ", "[9, ")


@refused("renamed-evidence")
def renamed_file(p: Proposal) -> None:
    old = p.file(LINES)
    p.git("mv", old, old.replace("line-", "renamed-"))


@refused("changed-mode")
def mode_change(p: Proposal) -> None:
    (p.path / p.file(LINES)).chmod(0o755)


@refused("removed-evidence")
def removed_record_set(p: Proposal) -> None:
    p.remove(p.file(LINES))


@refused("removed-evidence")
def deleted_retraction(p: Proposal) -> None:
    p.remove(p.file("evidence/retractions/*.json"))


@refused("removed-evidence", "unknown-manifest")
def removed_manifest(p: Proposal) -> None:
    p.remove(p.file("evidence/manifests/*.json"))


@refused("changed-evidence")
def changed_split(p: Proposal) -> None:
    p.edit(p.file("evidence/splits/*.json"), "0.2", "0.3")


@refused("changed-evidence", "wrong-digest")
def parameter_edited_by_hand(p: Proposal) -> None:
    p.edit(p.file("evidence/calibrations/*/*.json"), '"width": ', '"width": 1')


@refused("removed-evidence")
def merge_commit_that_drops_a_file(p: Proposal) -> None:
    p.git("switch", "-q", "-c", "side")
    p.write("evidence/README.md", "Side.\n")
    p.commit("side")
    p.git("switch", "-q", "main")
    p.write("evidence/NOTES.md", "Main.\n")
    p.commit("main")
    p.git("merge", "-q", "--no-commit", "--no-ff", "side")
    p.git("rm", "-q", p.file(LINES))


# --- references, forms and names ---


@refused("unknown-manifest")
def record_with_an_unknown_manifest(p: Proposal) -> None:
    p.add_record_set({**p.session("new"), "environment": "1" * 64})


@refused("schema-violation")
def bare_name_and_latency(p: Proposal) -> None:
    value = p.record_set()
    bare = {"schema": value["schema"], "columns": ["name", "latency"], "rows": [["gemm", 1.5]]}
    p.put_record_set(value, json.dumps(bare).encode())


@refused("unreadable-document")
def not_a_number(p: Proposal) -> None:
    path = p.add_record_set(p.session("new"))
    content = p.read(path).replace(b"[8, 128, 64, ", b"[8, 128, 64, NaN, ")
    p.remove(path)
    p.put_record_set(p.session("new"), content)


@refused("unreadable-document")
def duplicate_key(p: Proposal) -> None:
    path = p.add_record_set(p.session("new"))
    content = p.read(path).replace(b'"kind": "measured"', b'"kind": "measured", "kind": "x"')
    p.remove(path)
    p.put_record_set(p.session("new"), content)


@refused("unreadable-document")
def alias_in_yaml(p: Proposal) -> None:
    p.write(POLICY, p.read(POLICY).replace(b"matching:", b"matching: &m"))


@refused("not-canonical")
def other_bytes(p: Proposal) -> None:
    path = p.add_record_set(p.session("new"))
    content = p.read(path).replace(b"[8, 128", b"[8,  128")
    p.remove(path)
    p.put_record_set(p.session("new"), content)


@refused("symlink", "not-comparable")
def symbolic_link_that_hides_a_folder(p: Proposal) -> None:
    shutil.rmtree(p.path / "evidence/records")
    (p.path / "evidence/records").symlink_to("../schemas")


@refused("submodule")
def submodule(p: Proposal) -> None:
    commit = p.git("rev-parse", "HEAD")
    p.git("update-index", "--add", "--cacheinfo", f"160000,{commit},evidence/records/other")


@refused("name-twins")
def case_twin(p: Proposal) -> None:
    p.write("evidence/Manifests/README.md", "x")


@refused("unseen-characters")
def note_that_injects_a_workflow_command(p: Proposal) -> None:
    value = p.session("new")
    value["protocol"]["notes"] = ["ok\n::error file=x::forged", "\x1b]0;title\x07"]
    p.add_record_set(value)


# --- what new records say ---


@refused("imported-twice")
def duplicate_import(p: Proposal) -> None:
    value = p.record_set()
    value["session"] = "again"
    p.add_record_set(value)


@refused("suspected-unit")
def microseconds_written_as_milliseconds(p: Proposal) -> None:
    value = p.session("new")
    for row in value["rows"]:
        row[3] *= 1000
    p.add_record_set(value)


@refused("suspected-unit")
def milliseconds_written_as_microseconds(p: Proposal) -> None:
    value = p.session("new")
    value["columns"][3]["unit"] = "us"
    p.add_record_set(value)


@refused("faster-than-possible")
def unit_swapped_where_nothing_was_measured(p: Proposal) -> None:
    value = p.session("new", [[8192, 8192, 8192, 4.5, 0], [4096, 8192, 8192, 2.3, 1]])
    value["columns"][3]["unit"] = "us"
    p.add_record_set(value)


@refused("contradictory-source")
def revision_that_had_another_file(p: Proposal) -> None:
    value = p.record_set()
    value["source"]["sha256"] = "5" * 64
    p.add_record_set({**value, "session": "other", "rows": [[5, 5, 5, 0.5, 0]]})


# --- calibrations ---


@refused("forbidden-input")
def calibration_that_reads_a_case_id(p: Proposal) -> None:
    value = json.loads(p.read(p.file("evidence/calibrations/*/*.json")))
    value["inputs"].append("case_id")
    for item in value["slices"]:
        item["domain"]["case_id"] = {"minimum": 0, "maximum": 9}
    p.add_document("calibrations/operation-size-efficiency", value)


# --- who judges, and what questions mean ---


@refused("meaning-changed")
def alias_that_changes_old_answers(p: Proposal) -> None:
    p.edit(VOCABULARY, "bfloat16: [bf16]", "bfloat16: [bf16, half]")


@refused("meaning-changed")
def moved_alias(p: Proposal) -> None:
    p.edit(VOCABULARY, "float8: [fp8, float8_e4m3]", "float8: [float8_e4m3]")
    p.edit(VOCABULARY, "float8_block: [fp8_block]", "float8_block: [fp8_block, fp8]")


@refused("meaning-changed")
def dimension_that_matters_no_more(p: Proposal) -> None:
    p.edit(VOCABULARY, "type: term\n    material: true", "type: term\n    material: false")


@refused("meaning-removed", "unknown-term")
def removed_term_that_merged_records_have(p: Proposal) -> None:
    p.edit(VOCABULARY, "      float16: [fp16, half]\n", "")


@refused("no-vocabulary")
def removed_vocabulary(p: Proposal) -> None:
    p.remove(VOCABULARY)


@refused("schema-differs")
def altered_schema(p: Proposal) -> None:
    p.edit("schemas/record-set.v1.schema.json", '"required"', '"requiredNot"')


@refused("changed-profile")
def profile_changed_under_its_old_version(p: Proposal) -> None:
    p.edit(PROFILE, "peak_tops: 312", "peak_tops: 624")


@refused("unknown-calibration")
def promotion_of_nothing(p: Proposal) -> None:
    line = "{response: latency, operation: gemm, device: a100_80g, revision: %s}" % ("a" * 64)
    p.write(POLICY, p.read(POLICY) + f"calibrations: [{line}]\n".encode())


# --- gates, and figures that are worked out again ---


@refused("loosened-gate")
def loosened_gate(p: Proposal) -> None:
    p.edit(GATES, "max_mape_pct: 10", "max_mape_pct: 100")


@refused("loosened-gate")
def removed_gates(p: Proposal) -> None:
    p.remove(GATES)


@refused("gate-exceeded")
def promotion_of_what_too_few_records_train(p: Proposal) -> None:
    _promote_revision(p, p.file("evidence/calibrations/*/*.json"))


@refused("gate-exceeded", "loosened-gate")
def promotion_with_a_gate_of_its_own(p: Proposal) -> None:
    p.edit(GATES, "min_training_records: 150", "min_training_records: 1")
    p.edit(GATES, "min_held_out_records: 50", "min_held_out_records: 1")
    _promote_revision(p, p.file("evidence/calibrations/*/*.json"))


@refused("held-out-error")
def parameter_that_the_figures_do_not_follow_from(p: Proposal) -> None:
    path = p.file("evidence/calibrations/*/*.json")
    value = json.loads(p.read(path))
    value["slices"][0]["inside"]["interval"]["parameters"]["numbers"]["width"] *= 3
    p.add_document(f"calibrations/{value['family']}", value)


@refused("leak")
def held_out_points_that_train(p: Proposal) -> None:
    """Repeats of one point fall on both sides of a split by session."""
    p.add_record_set(p.session("again"))
    recipe = SplitRecipe(
        name="by-session",
        description="Leaks.",
        records=RecordSelection(device="a100_80g", operations=("gemm",), terms={"k": (64,)}),
        key=KeyText(columns=("m", "n", "@session")),
        bucket=BucketRule(seed="1", hex_digits=8, held_out=BucketRange(at_least=0, below=0.2)),
    )
    evidence = PerformanceDatabase.open(p.path, cache_directory=p.cache).worktree().evidence
    path, digest, content = document_file(build_split(evidence, recipe)[0])
    p.write(path, content)
    value = json.loads(p.read(p.file("evidence/calibrations/*/*.json")))
    for item in value["slices"]:
        item["split"] = digest
    p.add_document(f"calibrations/{value['family']}", value)


# --- plans ---


@refused("lock-digest")
def plan_lock_edited_by_hand(p: Proposal) -> None:
    shape = {"operation": "gemm", "device": "a100_80g", "dtype": "float16", "n": 64, "k": 64}
    plan = {
        "schema": "perfdb/plan/v1",
        "name": "step",
        "description": "One product.",
        "queries": [{"name": "product", "query": {**shape, "m": 8}}],
        "composition": {"kind": "sum"},
    }
    p.write("pipelines/plans/step.yaml", json.dumps(plan))
    p.commit("plan")
    assert p.perfdb("plan", "lock", "step").returncode == 0
    path = "pipelines/plans/step.lock.json"
    lock = json.loads(p.read(path))
    lock["queries"][0]["answer"]["value"] /= 2
    p.write(path, canonical_document(lock))


def _promote_revision(p: Proposal, path: str) -> None:
    series = "response: latency, operation: gemm, device: a100_80g"
    line = f"{{{series}, revision: {Path(path).stem}}}"
    p.write(POLICY, p.read(POLICY) + f"calibrations: [{line}]\n".encode())


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, proposal: Proposal) -> None:
    codes, change = REFUSED[name]
    change(proposal)
    # The submodule is in Git's index alone.
    proposal.commit(all_files=change is not submodule)
    verdict = proposal.check()
    assert verdict.status == 1, verdict.output
    assert codes <= verdict.codes(), verdict.codes()
    for finding in verdict.findings:
        assert finding["remedy"] and finding["message"] and finding["document"]


def test_every_rule_of_a_change_is_broken_here() -> None:
    checks = ("append-only", "sources", "conflicts", "physical-limits", "judges", "texts")
    checks += ("gates", "calibration-figures")
    rules = {rule.code for check in CHECKS if check.id in checks for rule in check.rules}
    broken = set().union(*(codes for codes, _ in REFUSED.values()))
    # Warnings and unreadable evidence of the base have tests of their own below.
    apart = {"conflicting-evidence", "refused-conflict", "contradictory-version", "judges-changed"}
    apart |= {"judged-by-new-schema", "faster-than-memory", "existing-unreadable"}
    # Of one snapshot: tests/checks and tests/cli/test_figures.py.
    apart |= {"gate-not-met", "two-gates", "gate-that-nothing-passes", "unknown-operation"}
    apart |= {"split-not-reproduced", "training-digest", "validation-pair"}
    apart |= {"figure-not-worked-out"}
    assert rules <= broken | apart


# --- several faults in one pull request, each found where it is ---


def test_every_fault_of_several_is_found(proposal: Proposal) -> None:
    p = proposal
    expected: dict[str, str] = {}

    manifest = json.loads(p.read(p.file("evidence/manifests/*.json")))
    other = p.add_document("manifests", {**manifest, "device": "h100_80g"})
    value = {**p.session("elsewhere"), "environment": Path(other).stem}
    expected[p.add_record_set(value)] = "environment-differs"

    value = p.session("no-unit")
    del value["columns"][3]["unit"]
    expected[p.add_record_set(value)] = "schema-violation"

    expected[p.add_record_set(p.session("zero", [[0, 64, 64, 0.5, 0]]))] = "bad-value"

    value = p.session("alias")
    value["context"]["dtype"] = "fp16"
    expected[p.add_record_set(value)] = "unknown-term"

    value = p.record_set()
    value |= {"session": "longer", "rows": [*value["rows"][5:7], [480, 64, 4096, 1.0, 99]]}
    expected[p.add_record_set(value)] = "imported-twice"

    path = p.add_record_set(p.session("misnamed"))
    wrong = path[:-17] + "0" * 12 + ".json"
    (p.path / path).rename(p.path / wrong)
    expected[wrong] = "wrong-digest"

    expected[p.retract("2" * 64)] = "unknown-target"

    value = json.loads(p.read(p.file("evidence/calibrations/*/*.json")))
    value["slices"][0]["split"] = "3" * 64
    path = p.add_document("calibrations/operation-size-efficiency", value)
    expected[path] = "unknown-split"

    line = "{response: latency, operation: gemm, device: a100_80g, revision: %s}" % ("a" * 64)
    p.write(POLICY, p.read(POLICY) + f"calibrations: [{line}]\n".encode())
    expected[POLICY] = "unknown-calibration"

    sound = p.add_record_set(p.session("sound", [[8, 64, 4096, 0.7, 0]]))
    p.commit()
    verdict = p.check()
    errors = {(f["document"], f["code"]) for f in verdict.findings if f["severity"] == "error"}
    assert expected.items() <= errors, verdict.output
    assert sound not in {document for document, _ in errors}


# --- what cannot be judged at all ---


def _refusal(p: Proposal, code: str) -> str:
    verdict = p.check()
    assert verdict.status == 5, verdict.output
    error, remedy = verdict.messages
    assert (error["code"], remedy["code"]) == (code, "remedy")
    return str(error["text"])


def test_forced_push_of_the_base(proposal: Proposal) -> None:
    proposal.commit("mine")
    proposal.git("switch", "-q", "--orphan", "rewritten")
    proposal.git("checkout", "-q", "origin/main", "--", ".")
    proposal.commit("rewritten")
    proposal.git("switch", "-q", "main")
    proposal.base = "rewritten"
    assert "forced push" in _refusal(proposal, "unrelated-histories")


def test_criss_cross_merges(proposal: Proposal) -> None:
    for branch in ("left", "right"):
        proposal.git("switch", "-q", "-c", branch, "origin/main")
        proposal.write(f"evidence/{branch}.md", branch)
        proposal.commit(branch)
    proposal.git("switch", "-q", "-c", "left2", "left")
    proposal.git("merge", "-q", "-m", "m", "right")
    proposal.git("switch", "-q", "right")
    proposal.git("merge", "-q", "-m", "m", "left")
    proposal.base = "left2"
    proposal.git("commit", "-q", "--allow-empty", "-m", "right again")
    proposal.git("switch", "-q", "left2")
    proposal.git("commit", "-q", "--allow-empty", "-m", "left again")
    proposal.git("switch", "-q", "right")
    assert "2 best common ancestors" in _refusal(proposal, "several-merge-bases")


def test_shallow_clone(propose: Callable[..., Proposal]) -> None:
    shallow = propose("--depth", "1", name="shallow")
    shallow.commit("mine")
    _refusal(shallow, "shallow-history")


def test_grafted_history(proposal: Proposal) -> None:
    proposal.commit("mine")
    head = proposal.git("rev-parse", "HEAD")
    grafts = proposal.path / ".git/info/grafts"
    grafts.parent.mkdir(exist_ok=True)
    grafts.write_text(f"{head}\n")
    _refusal(proposal, "grafted-history")


# --- two branches that are right alone ---


def _merged_meanwhile(p: Proposal, change: Bad) -> None:
    """Let the base branch move on, from where the proposal started."""
    p.git("switch", "-q", "-c", "merged", "origin/main")
    change(p)
    p.commit("merged meanwhile")
    p.git("switch", "-q", "main")
    p.base = "merged"


def _longer(session: str) -> Bad:
    def add(p: Proposal) -> None:
        value = p.session("longer")
        p.add_record_set({**value, "session": session})

    return add


def _add_readme(name: str) -> Bad:
    return lambda p: p.write(f"evidence/splits/{name}", "x")


def _promote(description: str) -> Bad:
    return lambda p: p.edit(POLICY, "description: >-\n", f"description: >-\n  {description}\n")


def _retract(p: Proposal) -> None:
    p.retract(p.sha256(p.file(LINES)))


def _remove_term(p: Proposal) -> None:
    p.edit(VOCABULARY, "      int4: [i4]\n", "")


def _use_term(p: Proposal) -> None:
    value = p.session("small")
    value["context"]["dtype"] = "int4"
    p.add_record_set(value)


CONFLICTS: Mapping[str, tuple[Bad, Bad, str]] = {
    "both import one file": (_longer("one"), _longer("two"), "imported-twice"),
    "both change the policy": (_promote("One."), _promote("Two."), "changed-on-both-sides"),
    "case twins": (_add_readme("notes.md"), _add_readme("Notes.md"), "name-twins"),
    "a term goes, a record comes": (_remove_term, _use_term, "unknown-term"),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_two_green_branches_that_conflict(name: str, proposal: Proposal) -> None:
    theirs, ours, code = CONFLICTS[name]
    ours(proposal)
    proposal.commit("ours")
    alone = proposal.check()
    assert alone.status == 0, alone.output
    _merged_meanwhile(proposal, theirs)
    verdict = proposal.check()
    assert verdict.status == 1, verdict.output
    assert code in verdict.codes()


def test_two_branches_that_fit(proposal: Proposal) -> None:
    _longer("ours")(proposal)
    proposal.commit("ours")
    _merged_meanwhile(proposal, _retract)
    verdict = proposal.check()
    assert verdict.status == 0, verdict.output


# --- signatures ---


def _key(p: Proposal, name: str) -> Path:
    key = p.path.parent / name
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    return key


def _signed_commit(p: Proposal, key: Path) -> None:
    options = ["-c", "gpg.format=ssh", "-c", f"user.signingkey={key}"]
    p.git(*options, "commit", "-q", "-S", "--allow-empty", "-m", "signed")


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")
def test_signatures(proposal: Proposal) -> None:
    ada, eve = _key(proposal, "ada"), _key(proposal, "eve")
    allowed = proposal.path.parent / "allowed"
    allowed.write_text("ada@example.org " + ada.with_suffix(".pub").read_text())
    signed = ["--require-signed", "--allowed-signers", str(allowed)]
    _signed_commit(proposal, ada)
    assert proposal.check(*signed).status == 0
    _signed_commit(proposal, eve)
    assert proposal.check(*signed).codes() == {"untrusted-signature"}
    proposal.commit("unsigned")
    assert proposal.check(*signed).codes() == {"untrusted-signature", "unsigned-commit"}
    assert proposal.check().status == 0

    # An altered commit under the signature of the first one.
    raw = proposal.git("cat-file", "commit", "HEAD~2").replace("\n\nsigned", "\n\nforged")
    forged = proposal.git("hash-object", "-t", "commit", "-w", "--stdin", data=f"{raw}\n".encode())
    verdict = proposal.check("--at", forged, *signed)
    assert verdict.codes() == {"untrusted-signature"}
    assert "does not fit" in verdict.one("untrusted-signature")["message"]


def test_signers_come_from_outside_the_change(proposal: Proposal) -> None:
    proposal.write("signers", "ada@example.org ssh-ed25519 AAAA\n")
    proposal.commit("let me sign")
    signed = ["--require-signed", "--allowed-signers", str(proposal.path / "signers")]
    verdict = proposal.check(*signed)
    assert (verdict.status, verdict.messages[0]["code"]) == (2, "signers-from-head")
    # What the base branch holds is no choice of the change.
    proposal.git("branch", "trusted")
    proposal.base = "trusted"
    proposal.commit("not signed")
    assert proposal.check(*signed).codes() == {"unsigned-commit"}
    missing = proposal.check("--require-signed")
    assert (missing.status, missing.messages[0]["code"]) == (2, "conflicting-options")


def test_without_openssh(proposal: Proposal, tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.write_text("")
    words = ["check", "--base", "origin/main", "--require-signed", "--allowed-signers"]
    done = proposal.perfdb(*words, str(allowed), PATH=os.devnull)
    assert done.returncode == 2
    assert "ssh-keygen, which is not installed" in done.stderr


# --- warnings, and what passes ---


def test_disagreement_is_a_warning_that_names_both(proposal: Proposal) -> None:
    value = proposal.session("new")
    for row in value["rows"]:
        row[3] *= 1.7
    path = proposal.add_record_set(value)
    proposal.commit()
    verdict = proposal.check()
    assert (verdict.status, verdict.codes("warning")) == (0, {"conflicting-evidence"})
    finding = verdict.one("conflicting-evidence")
    assert "60 of 60 contexts" in finding["message"] and "line-128" in finding["message"]
    assert finding["document"] == path


def test_a_policy_that_refuses_conflicts_refuses_to_merge_them(proposal: Proposal) -> None:
    proposal.edit(POLICY, "action: show", "action: refuse")
    proposal.commit("strict")
    proposal.git("branch", "strict")
    proposal.base = "strict"
    value = proposal.session("new")
    for row in value["rows"]:
        row[3] *= 1.7
    proposal.add_record_set(value)
    proposal.commit()
    assert proposal.check().codes() == {"refused-conflict"}


def test_owners_see_that_judges_change(proposal: Proposal) -> None:
    proposal.edit(POLICY, "threshold: 0.2", "threshold: 20")
    proposal.commit()
    verdict = proposal.check()
    assert (verdict.status, verdict.codes("warning")) == (0, {"judges-changed"})
    assert "conflict" in verdict.one("judges-changed")["message"]


def test_the_policy_of_the_merge_base_judges(proposal: Proposal) -> None:
    proposal.edit(POLICY, "threshold: 0.2", "threshold: 20")
    value = proposal.session("new")
    for row in value["rows"]:
        row[3] *= 1.7
    proposal.add_record_set(value)
    proposal.commit()
    assert "conflicting-evidence" in proposal.check().codes("warning")


def test_a_version_in_the_path_that_the_rows_contradict(proposal: Proposal) -> None:
    value = proposal.session("new")
    value["source"]["file"] = "data/nccl/2.26.2/table.csv"
    value["rows"] = value["rows"][:5]
    value["context"] |= {"runtime": "nccl", "runtime_revision": "2.29.2"}
    proposal.add_record_set(value)
    proposal.commit("wrong")
    assert proposal.check().codes("warning") == {"contradictory-version"}


def test_broken_evidence_of_the_base(proposal: Proposal) -> None:
    value = proposal.session("broken")
    value["rows"][3].pop()
    proposal.add_record_set(value)
    proposal.commit("merged unchecked")
    proposal.git("branch", "merged")
    proposal.base = "merged"
    proposal.add_record_set({**proposal.session("new"), "environment": "1" * 64})
    proposal.commit()
    verdict = proposal.check()
    assert verdict.codes() == {"existing-unreadable", "unknown-manifest"}


def test_times_that_only_a_cache_explains(proposal: Proposal) -> None:
    value = proposal.session("cached")
    value["context"] |= {"operation": "norm", "norm_kind": "rms"}
    value["columns"][:3] = [
        {"name": name, "role": "dimension", "unit": "1"} for name in ("tokens", "hidden_size")
    ]
    needed_ms = 2 * (4096 * 4096 * 2 + 4096 * 2) / 2039e9 * 1e3
    value["rows"] = [[4096, 4096, needed_ms / 1.5, 0], [4096, 4096, needed_ms * 1.1, 1]]
    proposal.add_record_set(value)
    proposal.commit()
    verdict = proposal.check()
    assert (verdict.status, verdict.codes("warning")) == (0, {"faster-than-memory"})
    assert "1 of 2 rows" in verdict.one("faster-than-memory")["message"]


def test_a_revision_that_would_not_pass_the_gates_is_noted_once(proposal: Proposal) -> None:
    old = proposal.file("evidence/calibrations/*/*.json")
    value = json.loads(proposal.read(old))
    path = proposal.add_document(f"calibrations/{value['family']}", {**value, "seed": 99})
    proposal.commit()
    verdict = proposal.check()
    assert verdict.status == 0
    assert [f["document"] for f in verdict.findings if f["code"] == "gate-not-met"] == [path]
    assert proposal.perfdb("check").stdout.startswith("no findings")


def test_a_schema_that_the_merge_base_has_not(proposal: Proposal) -> None:
    name = "schemas/pipeline.v1.schema.json"
    schema = proposal.read(name)
    proposal.remove(name)
    proposal.commit("an older repository")
    proposal.git("branch", "older")
    proposal.base = "older"
    proposal.write(name, schema)
    stage = {"name": "a", "component": "c"}
    pipeline = {"schema": "perfdb/pipeline/v1", "name": "p", "version": "1", "stages": [stage]}
    proposal.write("pipelines/p.json", json.dumps(pipeline))
    proposal.commit("schema and document at once")
    verdict = proposal.check()
    assert verdict.codes("warning") == {"judges-changed", "judged-by-new-schema"}


def clean(p: Proposal) -> None:
    """One more session, within the noise, and a correction of a record that was wrong."""
    value = p.session("new")
    for row in value["rows"]:
        row[3] *= 1.05
    p.add_record_set(value)
    wrong = p.file("evidence/records/*/gemm/throttled-*.json")
    again = json.loads(p.read(wrong))
    p.add_record_set({**again, "session": "corrected", "rows": [[7, 7, 7, 3.5, 0]]})
    p.write("evidence/README.md", "Words.\n")
    p.write(VOCABULARY, p.read(VOCABULARY).replace(b"int4: [i4]", b"int4: [i4, four_bits]"))


def test_clean_pull_request(proposal: Proposal) -> None:
    clean(proposal)
    proposal.commit()
    verdict = proposal.check()
    assert (verdict.status, verdict.codes("error")) == (0, set()), verdict.output
    assert verdict.codes("warning") == {"judges-changed"}


def test_nothing_depends_on_the_work_tree(proposal: Proposal) -> None:
    proposal.commit("clean")
    proposal.remove(proposal.file(LINES))
    shutil.rmtree(proposal.path / "schemas")
    assert proposal.check().findings == []
    worktree = proposal.check("--worktree")
    assert {"removed-evidence", "judges-changed"} <= {f["code"] for f in worktree.findings}


# --- where findings are shown ---


def test_findings_stand_on_their_lines(proposal: Proposal) -> None:
    value = proposal.session("new")
    value["rows"][3][0] = 0
    value["protocol"]["notes"] = ["see\n::error::[x](http://example.org) {0}"]
    path = proposal.add_record_set(value)
    proposal.commit()
    lines = proposal.read(path).decode().split("\n")
    verdict = proposal.check()
    bad, note = verdict.one("bad-value"), verdict.one("unseen-characters")
    assert lines[bad["line"] - 1].lstrip().startswith("[0, ")
    assert "::error::" in lines[note["line"] - 1]

    base = ["check", "--base", "origin/main", "--format"]
    annotations = proposal.perfdb(*base, "github").stdout.splitlines()
    assert any(f",line={bad['line']},title=perfdb bad-value" in line for line in annotations)
    assert all(line.startswith(("::error file=", "::warning file=")) for line in annotations)

    log = json.loads(proposal.perfdb(*base, "sarif").stdout)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    assert {result["ruleId"] for result in run["results"]} == {f["code"] for f in verdict.findings}
    for result, finding in zip(run["results"], verdict.findings, strict=True):
        assert rules[result["ruleIndex"]] == result["ruleId"] == finding["code"]
        assert result["level"] == finding["severity"]
        (place,) = result["locations"]
        assert place["physicalLocation"] == {
            "artifactLocation": {"uri": finding["document"], "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": finding["line"] or 1},
        }
        assert "[x]" not in result["message"]["text"].replace("\\[", "").replace("\\]", "")


def test_select_and_ignore(proposal: Proposal) -> None:
    proposal.edit(proposal.file(LINES), "[8, ", "[9, ")
    proposal.commit()
    assert proposal.check("--select", "append-only").codes() == {"changed-evidence"}
    ignored = ("append-only", "unknown-record-set", "calibration-figures")
    rest = proposal.check(*(word for name in ignored for word in ("--ignore", name)))
    assert rest.codes() == {"wrong-digest"}
