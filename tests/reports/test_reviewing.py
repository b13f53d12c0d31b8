"""Reviews as text, Markdown and plots: sizes of changes, bounds, axes."""

import math
import re
from xml.etree import ElementTree

import pytest

from perfdb_git.reports.review_sections import change_text, documents_text
from perfdb_git.reports.reviewing import review_lines
from perfdb_git.reports.reviewing_markdown import review_markdown
from perfdb_git.reports.scatter_svg import PointSet, Scatter, scatter_svg
from perfdb_git.review.answers import Answer, AnsweredMetric
from perfdb_git.review.changes import Review
from perfdb_git.review.documents import DocumentChange
from perfdb_git.review.impact import AnswerChange, Impact
from perfdb_git.review.reasons import Reason

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.0, "0 %"), (1.1, "+10 %"), (0.9, "-10 %"), (3.0, "x 3"), (0.25, "/ 4")],
)
def test_the_size_of_a_change(ratio: float, text: str) -> None:
    assert change_text(math.log(ratio)) == text
    assert change_text(None) == "-"


def test_numbers_of_documents() -> None:
    assert documents_text(1, "policy") == "1 policy"
    assert documents_text(2, "policy") == "2 policies"
    assert documents_text(1200, "record-set") == "1,200 record sets"


def review_of(count: int) -> Review:
    """A review with so many changed answers and so many documents."""
    before = Answer(code="no-record", reason="none")
    metric = AnsweredMetric(value=2e-3, unit="s", lower=1e-3, upper=3e-3, level=0.9)
    after = Answer(
        code="resolved",
        reason="exact",
        metrics={"latency": metric},
        method="measured",
        provider="recorded",
        validity="exact",
    )
    change = AnswerChange(
        name="s",
        origin="sample",
        query={"operation": "gemm", "m": 1},
        before=before,
        after=after,
        changed=("answer",),
        log_ratio=None,
        reasons=(Reason(kind="new-records", text="new records", documents=("a/b.json",) * 5),),
    )
    document = DocumentChange(
        kind="record-set", change="added", path="evidence/records/x.json", old=None, new="1" * 40
    )
    return Review(
        base="1" * 40,
        head="2" * 40,
        is_merge_base=False,
        policy="default",
        documents=(document,) * count,
        settings=(),
        retractions=(),
        series=(),
        impact=Impact(asked=count, from_plans=0, changes=(change,) * count),
    )


@pytest.mark.parametrize("most", [8_000, 20_000, 60_000])
def test_markdown_fills_its_room_and_no_more(most: int) -> None:
    text = review_markdown(review_of(2000), most_bytes=most)
    assert 0.8 * most < len(text.encode()) <= most
    left_out = [int(found.replace(",", "")) for found in re.findall(r"([\d,]+) rows more", text)]
    shown = [text.count("new records ("), text.count("evidence/records/x.json")]
    assert [sum(pair) for pair in zip(shown, left_out, strict=True)] == [2000, 2000]
    assert shown[0] > shown[1] > 0


def test_short_tables_are_not_folded() -> None:
    text = review_markdown(review_of(3))
    assert "<details>" not in text
    assert "left out" not in text
    assert text.count("evidence/records/x.json") == 3
    assert "(`b.json`" not in text
    assert "new records (b.json, b.json, b.json, …)" in text


def test_text_shows_the_first_rows() -> None:
    lines = [line.text for line in review_lines(review_of(25))]
    assert sum("operation=gemm" in line for line in lines) == 20
    assert any("and 5 more" in line for line in lines)


def drawn(scatter: Scatter) -> ElementTree.Element:
    return ElementTree.fromstring(scatter_svg(scatter))


def scatter_of(*points: tuple[float, float], equality: bool = False) -> Scatter:
    one = PointSet(name="one", points=points[:1])
    rest = PointSet(name="<rest>", points=points[1:], hints=["a & b"] * (len(points) - 1))
    return Scatter(
        title="t <b>", x_title="x", y_title="y", sets=(one, rest), with_equality=equality
    )


@pytest.mark.parametrize(
    "points",
    [
        [(1.0, 1.0)],
        [(1.0, 1.0), (1.05, 1.02)],
        [(1.0, 1e-9), (10.0, 1e-3), (1e18, 1e3)],
        [(5e-324, 1.0), (1e300, 2.0)],
    ],
)
def test_points_stand_within_the_axes(points: list[tuple[float, float]]) -> None:
    root = drawn(scatter_of(*points))
    groups = root.findall(f"{SVG}g")
    circles = [circle for group in groups for circle in group.findall(f"{SVG}circle")]
    assert len(circles) == len(points)
    for circle in circles:
        assert 84 <= float(circle.get("cx", "0")) <= 620
        assert 56 <= float(circle.get("cy", "0")) <= 366
    lines = [line for line in root.findall(f"{SVG}line") if line.get("class") == "grid"]
    assert 1 <= len(lines) <= 20


def test_equal_points_stand_on_the_line() -> None:
    root = drawn(scatter_of((1.0, 1.0), (4.0, 4.0), (2.0, 8.0), equality=True))
    (line,) = [line for line in root.findall(f"{SVG}line") if line.get("class") == "equal"]
    x1, y1, x2, y2 = (float(line.get(name, "0")) for name in ("x1", "y1", "x2", "y2"))
    circles = [c for group in root.findall(f"{SVG}g") for c in group.findall(f"{SVG}circle")]
    offsets = []
    for circle in circles:
        x, y = float(circle.get("cx", "0")), float(circle.get("cy", "0"))
        offsets.append(y - (y1 + (x - x1) * (y2 - y1) / (x2 - x1)))
    assert abs(offsets[0]) < 0.2
    assert abs(offsets[1]) < 0.2
    # Above the line on the screen: the new value is the larger one.
    assert offsets[2] < -20
    assert root.findtext(f"{SVG}title") == "t <b>"
