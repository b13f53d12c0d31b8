"""``perfdb diff`` as a user runs it: ranges, formats, exit status, and hostile evidence."""

import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.cli.evidence import Evidence, envelope
from tests.plans.plan_evidence import SMALL, UNMEASURED, plan, put_plan, query
from tests.record_headers import retraction_document

HOSTILE = "::error::pwn @everyone #1 <script>alert(1)</script> `x` | ![i](https://e.org) ##[stop]"
SVG = "{http://www.w3.org/2000/svg}"


def data_of(evidence: Evidence, *arguments: str) -> dict[str, Any]:
    result = evidence.perfdb("diff", *arguments, "--json")
    assert result.status == 0, result.err
    value = envelope(result)
    assert (value["command"], value["status"]) == ("diff", "ok")
    data: dict[str, Any] = value["data"]
    return data


@pytest.fixture
def changed(evidence: Evidence) -> Evidence:
    """A second commit with a second session: one shape known, one new."""
    rows = [(128, 10240, 8192, 3.0, 0.1, 20), (1024, 10240, 8192, 20.0, 0.2, 20)]
    evidence.add_gemm("two", rows)
    evidence.commit("a second session")
    return evidence


def test_text(changed: Evidence) -> None:
    result = changed.perfdb("diff", "HEAD~1..HEAD")
    assert (result.status, result.err) == (0, "")
    head = changed.git("rev-parse", "HEAD")
    assert f"to {head[:12]}" in result.out
    assert "1 record set added" in result.out
    assert "2 records added in 1 series" in result.out
    assert "operation=gemm dtype=float16 device=a100_80g m=128 n=10240 k=8192" in result.out
    assert "+2.23 %" in result.out
    assert re.search(r"new records \(two-[0-9a-f]{12}\.json\)", result.out)
    assert "measured gemm on a100_80g" in result.out
    assert max(map(len, result.out.splitlines())) <= 100


def test_queries_of_plans_are_asked_whatever_changed(evidence: Evidence) -> None:
    put_plan(evidence, plan(query("known", SMALL), query("new", UNMEASURED)))
    bad = {**plan(query("x", {**SMALL, "dtype": "float99"})), "name": "bad"}
    put_plan(evidence, bad, "pipelines/plans/bad.yaml")
    evidence.commit("plans")
    evidence.add_gemm("two", [(3000, 10240, 8192, 9.0, 0.1, 20)])
    evidence.commit("what a plan asks for")
    result = evidence.perfdb("diff", "HEAD~1..HEAD", "--json", "--queries", "2")
    data = envelope(result)["data"]
    assert (data["impact"]["asked"], data["impact"]["from_plans"]) == (2, 2)
    (change,) = data["impact"]["changes"]
    assert (change["name"], change["origin"]) == ("step/new", "plan")
    assert {"value", "method", "source"} <= set(change["changed"])
    (message,) = (m for m in envelope(result)["messages"] if m["level"] == "warning")
    assert message["code"] == "bad-plan-query"
    assert message["text"].startswith("plan bad is left out: ")


def test_json(changed: Evidence) -> None:
    data = data_of(changed, "HEAD~1", "HEAD")
    assert data["head"] == changed.git("rev-parse", "HEAD")
    assert data["base"] == changed.git("rev-parse", "HEAD~1")
    assert data["impact"]["asked"] > 5
    sizes = [abs(change["log_ratio"] or 0) for change in data["impact"]["changes"]]
    assert sizes == sorted(sizes, reverse=True)
    change = next(c for c in data["impact"]["changes"] if c["query"]["m"] == 128)
    assert change["after"]["metrics"]["latency"]["value"] == pytest.approx(2.936e-3)
    assert change["changed"] == ["value", "interval"]
    assert [reason["kind"] for reason in change["reasons"]] == ["new-records"]
    (series,) = data["series"]
    assert (series["new_shapes"], series["known_shapes"]) == (1, 1)


def test_ranges(changed: Evidence) -> None:
    expected = data_of(changed, "HEAD~1", "HEAD")
    for range_text in ("HEAD~1..HEAD", "HEAD~1..", "HEAD~1"):
        assert data_of(changed, range_text) == expected
    merged = data_of(changed, "HEAD~1...HEAD")
    assert merged["is_merge_base"]
    assert merged["base"] == expected["base"]
    backwards = data_of(changed, "HEAD..HEAD~1")
    assert backwards["series"][0]["records"]["removed"] == 2


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        ((), 2, "bad-range"),
        (("a", "b", "c"), 2, "bad-range"),
        (("a..b", "c"), 2, "bad-range"),
        (("HEAD~9..HEAD",), 5, "unknown-revision"),
        (("HEAD", "--output", "x.json"), 2, "conflicting-options"),
        (("HEAD", "--format", "html"), 2, "conflicting-options"),
        (("HEAD", "--format", "html", "--output", "no/folder/x"), 2, "not-writable"),
    ],
)
def test_errors(changed: Evidence, arguments: tuple[str, ...], status: int, code: str) -> None:
    result = changed.perfdb("diff", *arguments, "--json")
    assert (result.status, envelope(result)["messages"][0]["code"]) == (status, code)


def test_a_shallow_clone_has_no_merge_base(changed: Evidence, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    changed.git("clone", "-q", "--depth", "2", f"file://{changed.path}", str(shallow))
    arguments = ("--repo", str(shallow), "--json", "--queries", "0")
    assert changed.perfdb("diff", "HEAD~1..HEAD", *arguments).status == 0
    result = changed.perfdb("diff", "HEAD~1...HEAD", *arguments)
    assert (result.status, envelope(result)["messages"][0]["code"]) == (5, "shallow-history")


def test_the_exit_status(changed: Evidence) -> None:
    assert changed.perfdb("diff", "HEAD~1..HEAD").status == 0
    result = changed.perfdb("diff", "HEAD~1..HEAD", "--exit-code", "--json")
    assert (result.status, envelope(result)["status"]) == (1, "findings")
    changed.write("README.md", b"x")
    changed.commit("no evidence")
    result = changed.perfdb("diff", "HEAD~1..HEAD", "--exit-code")
    assert result.status == 0
    assert "no answer differs" in result.out


def test_a_policy_by_name(changed: Evidence) -> None:
    assert data_of(changed, "HEAD~1", "--policy", "nothing")["impact"]["changes"] == []


def hostile(evidence: Evidence) -> None:
    """Everything that whoever sends a pull request can choose, chosen badly."""
    context = {"runtime_revision": HOSTILE}
    sha256 = evidence.add_gemm("evil", [(128, 10240, 8192, 9.0, 0.1, 20)], context=context)
    (path,) = (evidence.path / "evidence/records").rglob(f"*{sha256[:12]}.json")
    text = path.read_text().replace('"session": "evil"', f'"session": {json.dumps(HOSTILE)}')
    path.write_text(text)
    first = next((evidence.path / "evidence/records").rglob("one-*.json")).read_bytes()
    target = f"{hashlib.sha256(first).hexdigest()}#1"
    retraction = retraction_document(target, f"a\n{HOSTILE}\u202e")
    content = json.dumps(retraction, indent=2).encode() + b"\n"
    evidence.write(f"evidence/retractions/{hashlib.sha256(content).hexdigest()}.json", content)
    evidence.commit(HOSTILE)


def test_hostile_text_runs_no_workflow_command(evidence: Evidence) -> None:
    hostile(evidence)
    for output in ("text", "markdown", "html"):
        result = evidence.perfdb("diff", "HEAD~1..HEAD", "--format", output)
        assert result.status == 0, result.err
        assert "everyone" in result.out
        for line in result.out.splitlines():
            assert not line.lstrip().startswith("::")
            assert "##[" not in line
            assert "\u202e" not in line


def without_code(markdown: str) -> str:
    """Return Markdown less its code spans, which have fences of any length."""
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", markdown)


def test_hostile_text_stays_in_code(evidence: Evidence) -> None:
    hostile(evidence)
    result = evidence.perfdb("diff", "HEAD~1..HEAD", "--format", "markdown")
    bare = without_code(result.out)
    for trap in ("@", "<script", "](", "everyone", "::", "#1"):
        assert trap not in bare, bare
    for line in result.out.splitlines():
        if line.startswith("| "):
            # A pipe of the evidence opens no cell of its own.
            assert line.replace("\\|", "").count("|") in (4, 5, 6, 7, 8)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_page_loads_and_runs_nothing(evidence: Evidence) -> None:
    hostile(evidence)
    page = evidence.path.parent / "review.html"
    result = evidence.perfdb("diff", "HEAD~1..HEAD", "--format", "html", "--output", str(page))
    assert (result.status, result.out) == (0, "")
    assert "was written" in result.err
    text = page.read_text()
    tags = _Tags()
    tags.feed(text)
    assert not tags.tags & {"script", "img", "iframe", "object", "link", "a"}
    assert tags.links == []
    plots = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert plots
    for plot in plots:
        assert ElementTree.fromstring(plot).tag == f"{SVG}svg"


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_draws_the_page(changed: Evidence) -> None:
    folder = changed.path.parent
    page, picture = folder / "review.html", folder / "review.png"
    arguments = ("--format", "html", "--output", str(page))
    assert changed.perfdb("diff", "HEAD~1..HEAD", *arguments).status == 0
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1000,900"]
    command += [f"--user-data-dir={folder / 'browser'}", f"--screenshot={picture}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=50)
    assert picture.read_bytes().startswith(b"\x89PNG")
    # An empty page of this size takes 4 kB.
    assert picture.stat().st_size > 30_000


def test_a_file_beside_the_envelope(changed: Evidence) -> None:
    comment = changed.path.parent / "comment.md"
    arguments = ("--format", "markdown", "--output", str(comment), "--json")
    result = changed.perfdb("diff", "HEAD~1..HEAD", *arguments)
    value = envelope(result)
    assert [message["code"] for message in value["messages"]] == ["written"]
    assert value["data"]["series"]
    assert comment.read_text().startswith("### What this change does")


def test_the_comment_has_a_bounded_size(evidence: Evidence) -> None:
    rows = [(m, 10240, 8192, 0.1 * m, 0.5, 20) for m in range(1, 700)]
    evidence.add_gemm("many", rows, context={"runtime_revision": "r" * 300})
    for number in range(1, 40):
        context = {"runtime_revision": f"{number}-" + "é|`" * 100}
        evidence.add_gemm(f"s{number:03}", [(number, 8, 8, 1.0, 0.1, 20)], context=context)
        evidence.retract(f"{number:064x}#1")
    evidence.commit("much")
    arguments = ("diff", "HEAD~1..HEAD", "--queries", "600", "--format", "markdown")
    result = evidence.perfdb(*arguments)
    assert result.status == 0
    size = len(result.out.encode())
    assert 40_000 < size <= 60_000
    assert "left out of this text" in result.out
    # Every section is there, be it only as a count of what was left out.
    for title in ("Answers that differ", "Retractions", "Records by series", "Documents"):
        assert title in result.out
    assert result.out.count("<details>") == result.out.count("</details>")
    assert evidence.perfdb(*arguments).out == result.out
