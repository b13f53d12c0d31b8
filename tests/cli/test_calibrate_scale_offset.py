"""`perfdb calibrate scale-offset`: a component fitted, judged and simulated with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perfdb_git.analysis.scale_offset import ScaleOffset
from perfdb_git.calibration import scale_offset_fits
from perfdb_git.calibration.scale_offset_fits import fit_component
from perfdb_git.calibration.scale_offset_samples import ScaleOffsetRequest
from perfdb_git.database import PerformanceDatabase
from perfdb_git.errors import UsageError
from perfdb_git.formats.canonical import canonical_document, canonical_record_set
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.strict_json import read_json
from perfdb_git.storage.layout import record_set_path
from tests.cli.evidence import Evidence, envelope

SIZES = [1000 * 2**power for power in range(12)]
SCALE, OFFSET_NS, FIXED_NS, NS_PER_BYTE = 1.25, 300.0, 100, 0.1
PROFILE = {
    "schema": "perfdb/timing-profile/v1",
    "name": "node-v0",
    "version": "v0",
    "components": {
        "link": {
            "fixed_latency_ns": FIXED_NS,
            "bandwidth_gbps": 80,
            "lanes": 1,
            "resource_mode": "overlap",
            "evidence": "analytic",
            "notes": "bandwidth_gbps: declared.",
        },
        "clock": {
            "fixed_latency_ns": 2,
            "lanes": 1,
            "resource_mode": "overlap",
            "evidence": "analytic",
            "notes": ["declared"],
        },
    },
}
COMMAND = (
    *("calibrate", "scale-offset", "--profile", "node-v0", "--component", "link"),
    *("--target", "a100", "--operation", "send_recv", "--work", "bytes=message_bytes"),
    *("--name", "node-v1", "--version", "v1"),
)


def measured_ms(size: int, *, scale: float = SCALE, offset: float = OFFSET_NS) -> float:
    return (scale * (FIXED_NS + NS_PER_BYTE * size) + offset) / 1e6


def add(evidence: Evidence, rows: list[list[Any]], *, repeats: int = 20) -> None:
    """Write latencies of messages, taken from the header of the template's record set."""
    (path, *_) = sorted(evidence.path.glob("evidence/records/*/gemm/*.json"))
    header: Any = read_json(path.read_bytes(), document="template")
    header.pop("rows")
    header |= {"session": "links"}
    header["protocol"] |= {"repetitions": repeats}
    header["context"] |= {"operation": "send_recv"}
    header["columns"] = [
        {"name": "message_bytes", "role": "dimension", "unit": "B"},
        {"name": "participants", "role": "dimension", "unit": "1"},
        {"name": "latency", "role": "metric", "unit": "ms", "statistic": "median"},
    ]
    content = canonical_record_set(header, rows)
    name = record_set_path("a100_80g", "send_recv", "links", sha256_hex(content))
    evidence.write(name, content)
    evidence.commit("measure")


@pytest.fixture
def node(evidence: Evidence) -> Evidence:
    evidence.git("config", "user.name", "Ada Author")
    evidence.git("config", "user.email", "ada@example.org")
    evidence.write("profiles/node-v0.json", canonical_document(PROFILE))
    return evidence


def test_a_fitted_component_gets_a_profile_and_a_revision(node: Evidence) -> None:
    noise = [1 + ((7 * place) % 5 - 2) / 200 for place in range(len(SIZES))]
    add(node, [[s, 2, measured_ms(s) * f] for s, f in zip(SIZES, noise, strict=True)])
    done = node.perfdb(*COMMAND, "--commit", "--json")
    assert done.status == 0, done.err
    data = envelope(done)["data"]
    assert data["calibration_scale"] == pytest.approx(SCALE, rel=0.02)
    assert data["calibration_offset_ns"] == pytest.approx(OFFSET_NS, rel=0.1)
    assert data["held_out_report"]["overall"]["mape_pct"] < 2
    assert data["held_out_report"]["refused"] == 0
    profile = json.loads((node.path / "profiles/node-v1.json").read_text())
    link = profile["components"]["link"]
    assert (link["evidence"], link["target"]) == ("calibrated", "a100_80g")
    assert link["calibration"] == data["revision"]
    assert link["calibration_scale"] == data["calibration_scale"]
    assert 0 < link["uncertainty_pct"] < 5
    assert link["notes"][0] == "bandwidth_gbps: declared."
    assert "held-out MAPE" in link["notes"][1]
    assert profile["components"]["clock"] == PROFILE["components"]["clock"]  # type: ignore[index]
    assert node.perfdb("check").status == 0
    again = node.perfdb("calibrate", "check")
    assert again.status == 0, again.out


def test_exact_measurements_give_back_scale_and_offset(node: Evidence) -> None:
    add(node, [[size, 2, measured_ms(size)] for size in SIZES])
    done = node.perfdb(*COMMAND, "--dry-run", "--json")
    data = envelope(done)["data"]
    assert data["calibration_scale"] == pytest.approx(SCALE, rel=1e-6)
    assert data["calibration_offset_ns"] == pytest.approx(OFFSET_NS, rel=1e-5)
    assert node.git("status", "--porcelain") == ""


def test_below_the_gate_it_says_all_that_is_missing(node: Evidence) -> None:
    add(node, [[size, 2, measured_ms(size)] for size in SIZES[:3]], repeats=2)
    done = node.perfdb(*COMMAND)
    assert done.status == 4
    for text in (
        "sizes of message_bytes: 3, 10 are needed (8 to fit, 2 to judge)",
        "span, largest over smallest size: 4, 10 is needed",
        "measurements of the size that has the fewest: 2, 5 are needed",
    ):
        assert text in " ".join(done.err.split())
    assert not (node.path / "profiles/node-v1.json").exists()


def test_latency_that_falls_with_size_is_no_scale(node: Evidence) -> None:
    add(node, [[size, 2, 1 - size / 1e7] for size in SIZES])
    done = node.perfdb(*COMMAND)
    assert done.status == 2
    assert "the scale would be -" in " ".join(done.err.split())


def test_a_line_that_is_negative_inside_the_domain_is_refused(
    node: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(node, [[size, 2, measured_ms(size)] for size in SIZES])
    snapshot = PerformanceDatabase.open(node.path, cache_directory=node.cache).at()
    request = ScaleOffsetRequest(
        component="link",
        device="a100_80g",
        operation="send_recv",
        work="bytes",
        dimension="message_bytes",
    )
    # The smallest size is modelled as 200 ns.
    line = ScaleOffset(alpha=1.0, beta=-300e-9, covariance=None)
    monkeypatch.setattr(scale_offset_fits, "fit_scale_offset", lambda *_: line)
    with pytest.raises(UsageError) as caught:
        fit_component(snapshot.evidence, snapshot.timing_profile("node-v0"), request)
    assert caught.value.code == "negative-time"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"--component": "nvlink"}, "has no component 'nvlink'"),
        ({"--work": "bytes"}, "not KIND=DIMENSION"),
        ({"--work": "litres=message_bytes"}, "does not ask for 'litres'"),
        ({"--work": "packets=message_bytes"}, "no packet_rate_mpps"),
        ({"--name": "node-v0"}, "taken by another profile"),
    ],
)
def test_wrong_requests_are_refused(node: Evidence, changes: dict[str, str], text: str) -> None:
    add(node, [[size, 2, measured_ms(size)] for size in SIZES])
    words = list(COMMAND)
    for option, value in changes.items():
        words[words.index(option) + 1] = value
    done = node.perfdb(*words)
    assert done.status in (2, 3)
    assert text in " ".join(done.err.split())
