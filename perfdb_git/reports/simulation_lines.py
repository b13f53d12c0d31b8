"""A simulation's report as one readable screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from perfdb_git.model.simulation import (
    ComponentUse,
    EffectiveRate,
    PathStep,
    SimulationSummary,
    StageUse,
)
from perfdb_git.reports.quantities import counted, interval, number, percent, quantity
from perfdb_git.reports.screen import Line, fact, facts, table
from perfdb_git.reports.simulation_files import WrittenFile
from perfdb_git.reports.simulation_report import (
    ArrivalReference,
    DocumentReference,
    SimulationReport,
)

_PS_PER_S = 10**12
_SHORT_DIGEST = 12
_LONGEST_NAME = 32
_MOST_ROWS = 12
_MOST_REMARKS = 5
_MOST_SHARES = 4
_MOST_STRETCHES = 6


def simulation_lines(report: SimulationReport, files: Sequence[WrittenFile] = ()) -> list[Line]:
    """Return a run's report for people.

    Parameters
    ----------
    report : SimulationReport
        What is said of the run.
    files : sequence of WrittenFile
        What was written besides.
    """
    summary = report.summary
    text = f"{_time(summary.makespan_ps)}   makespan of {counted(summary.jobs, 'job')}"
    lines = [Line(f"{text} ({summary.makespan_ps:,} ps)", "good")]
    lines += fact("jobs", _jobs(report.arrivals, summary))
    lines += _throughput(summary)
    lines += _path(summary)
    lines += fact("evidence", _evidence(summary))
    lines += _answers(summary.stages)
    lines += fact("grid", _grid(summary))
    lines += facts("warning", summary.warnings, most=_MOST_REMARKS, style="warn")
    lines += fact("profile", _document(report.profile))
    lines += fact("pipeline", _document(report.pipeline))
    commit = report.snapshot.commit
    lines += fact("commit", commit or "none: uncommitted files of the work tree")
    if report.policy is not None:
        digest = report.policy.digest.removeprefix("sha256:")[:_SHORT_DIGEST]
        lines += fact("policy", f"{report.policy.name} (sha256 {digest})")
    if report.marks:
        lines += fact("marked", ", ".join(report.marks), "warn")
    for file in files:
        held = f"{counted(file.visits, 'visit')} of {counted(file.jobs, 'job')}"
        lines += fact("written", f"{file.path} ({file.kind}: {held})")
    lines += _components(summary.components)
    lines += _stages(summary.stages)
    lines += _sweep(report)
    lines += _sensitivity(report)
    return lines


def _time(ps: int) -> str:
    return quantity(ps / _PS_PER_S, "s")


def _name(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def _rate(jobs_per_s: float) -> str:
    return f"{jobs_per_s:,.0f} jobs/s" if jobs_per_s >= 1000 else f"{number(jobs_per_s)} jobs/s"


def _jobs(arrivals: ArrivalReference, summary: SimulationSummary) -> str:
    kinds = {
        "batch": "all at 0",
        "interval": f"one every {quantity((arrivals.interval_ns or 0) / 1e9, 's')}",
        "list": "at listed times",
        "closed-loop": f"closed loop of {arrivals.window}",
    }
    return f"{kinds[arrivals.kind]}; {counted(summary.visits, 'visit')}, {summary.engine} engine"


def _throughput(summary: SimulationSummary) -> list[Line]:
    latency = summary.latency_ps
    reached = summary.throughput_jobs_per_s
    lines = fact(
        "throughput", "unbounded: nothing takes time" if reached is None else _rate(reached)
    )
    parts = [f"{name} {_time(getattr(latency, name))}" for name in ("p50", "p95", "p99", "max")]
    lines += fact("latency", f"{', '.join(parts)}; mean {quantity(latency.mean / _PS_PER_S, 's')}")
    if summary.capacity is None:
        return [*lines, *fact("bottleneck", "none: no component takes time")]
    bound = _rate(summary.capacity.jobs_per_s)
    text = f"{summary.capacity.component}; at most {bound} (an upper bound, not a forecast)"
    return [*lines, *fact("bottleneck", text, "strong")]


def _path(summary: SimulationSummary) -> list[Line]:
    steps, shares = summary.critical_path, summary.path_shares
    if steps is None or shares is None:
        return fact("path", "not kept: the run has too many visits")
    texts = [
        f"{share.component} {percent(share.share)} ({counted(share.visits, 'visit')})"
        for share in shares[:_MOST_SHARES]
    ]
    if len(shares) > _MOST_SHARES:
        texts.append(f"and {len(shares) - _MOST_SHARES} more")
    if summary.path_arrival_ps:
        texts.append(f"after the arrival of its first job at {_time(summary.path_arrival_ps)}")
    return [*fact("path", ", ".join(texts)), *fact("", " > ".join(_stretches(steps)))]


def _stretches(steps: Iterable[PathStep]) -> Iterator[str]:
    """Yield the path with neighbours of one stage put together."""
    groups = [list(group) for _, group in groupby(steps, key=lambda step: step.stage)]
    shown = groups if len(groups) <= _MOST_STRETCHES else groups[: _MOST_STRETCHES - 1]
    for group in shown:
        first, last = group[0].job, group[-1].job
        yield (
            f"{group[0].stage} #{first}"
            if len(group) == 1
            else (f"{group[0].stage} #{first}..#{last}")
        )
    if len(shown) < len(groups):
        yield f"and {len(groups) - len(shown)} more (--json has all)"


def _evidence(summary: SimulationSummary) -> str:
    uncertainty = summary.uncertainty_pct
    spread = "unknown" if uncertainty is None else f"up to ±{uncertainty:.3g} % of a service"
    targets = sorted({use.target for use in summary.components if use.target is not None})
    suffix = f"; calibrated against {', '.join(targets)}" if targets else ""
    return (
        f"{summary.evidence_class} (the weakest class of what was used); uncertainty {spread}"
        f"{suffix}"
    )


def _answers(stages: Sequence[StageUse]) -> list[Line]:
    """Lines of the stages whose service was resolved."""
    texts = []
    for stage in stages:
        answer = stage.answer
        if answer is None:
            continue
        value = answer.service_ns / 1e9
        bounds = "interval unknown"
        if answer.lower_ns is not None and answer.upper_ns is not None:
            bounds = interval(answer.lower_ns / 1e9, answer.upper_ns / 1e9, value, "s")
        said = answer.provenance
        records = said.get("record_ids")
        source = str(said.get("provider"))
        if isinstance(records, Sequence) and records:
            sha256, _, row = str(records[0]).partition("#")
            more = f" and {len(records) - 1} more" if len(records) > 1 else ""
            source += f" {sha256[:_SHORT_DIGEST]}#{row}{more}"
        texts.append(
            f"{stage.name}: {quantity(value, 's')} {answer.evidence} by {source}, {bounds}"
        )
    return facts("answers", texts, most=_MOST_REMARKS)


def _grid(summary: SimulationSummary) -> str:
    error = summary.grid_error
    if not error.bound_ps:
        return "1 ps; no service was rounded"
    return (
        f"1 ps; rounding changed a service by at most {error.worst_relative:.1e} of itself, the "
        f"run by at most {error.bound_ps:.3g} ps"
    )


def _document(document: DocumentReference) -> str:
    version = "" if document.version is None else f" {document.version}"
    return f"{document.name}{version} ({document.path}, sha256 {document.sha256[:_SHORT_DIGEST]})"


def _components(components: Sequence[ComponentUse]) -> list[Line]:
    titles = [
        *("component", "lanes", "visits", "busy", "used", "each lane"),
        *("mean wait", "max wait", "queue"),
    ]
    rows = [
        [
            _name(use.name),
            f"{use.lanes:,}",
            f"{use.visits:,}",
            _time(use.busy_ps),
            percent(use.utilisation),
            _lanes(use),
            _time(use.wait_ps // use.visits),
            _time(use.wait_max_ps),
            f"{use.queue_length:.3g}",
        ]
        for use in components[:_MOST_ROWS]
    ]
    return [Line(), *table(titles, rows, right=titles[1:]), *_rest(len(components), "component")]


def _lanes(use: ComponentUse) -> str:
    """Return the least and the greatest utilisation of a component's lanes."""
    if use.lanes == 1:
        return ""
    if use.lane_use is None:
        return "not kept"
    parts = [lane.utilisation for lane in use.lane_use]
    low = 0.0 if len(parts) < use.lanes else min(parts)
    least, greatest = percent(low), percent(max(parts))
    return greatest if least == greatest else f"{least.removesuffix(' %')}..{greatest}"


def _stages(stages: Sequence[StageUse]) -> list[Line]:
    titles = ["stage", "component", "service", "wait", "rate reached of declared"]
    rows = [
        [
            _name(stage.name),
            _name(stage.component),
            "varies" if stage.service_ps is None else _time(stage.service_ps),
            _time(stage.wait_ps),
            "by its query" if stage.answer is not None else ", ".join(map(_reached, stage.rates)),
        ]
        for stage in stages[:_MOST_ROWS]
    ]
    lines = table(titles, rows, right=("service", "wait"), wrap=True)
    return [Line(), *lines, *_rest(len(stages), "stage")]


def _reached(rate: EffectiveRate) -> str:
    return f"{rate.effective:.4g} of {rate.declared:.4g} {rate.unit} ({percent(rate.ratio)})"


def _rest(count: int, noun: str) -> list[Line]:
    if count <= _MOST_ROWS:
        return []
    return [Line(f"and {counted(count - _MOST_ROWS, noun)} more (--json has all)", "faint")]


def _sweep(report: SimulationReport) -> list[Line]:
    swept = report.sweep
    if swept is None:
        return []
    base = report.summary.makespan_ps
    titles = [swept.field, "makespan", "change", "throughput", "p50", "p99", "bottleneck"]
    rows = [
        [
            row.value,
            _time(row.makespan_ps),
            _change(100 * (row.makespan_ps - base) / base) if base else "",
            "" if row.throughput_jobs_per_s is None else _rate(row.throughput_jobs_per_s),
            _time(row.latency_ps.p50),
            _time(row.latency_ps.p99),
            _name(row.bottleneck or "none"),
        ]
        for row in swept.rows
    ]
    heading = Line(f"sweep of {swept.component}")
    return [Line(), heading, *table(titles, rows, right=titles[:-1])]


def _sensitivity(report: SimulationReport) -> list[Line]:
    if report.sensitivity is None:
        return []
    titles = ["makespan for", "1 % slower", "", "1 % faster", " "]
    rows = [
        [
            _name(one.component),
            f"{one.slower_ps:+,} ps",
            _change(one.slower_pct),
            f"{one.faster_ps:+,} ps",
            _change(one.faster_pct),
        ]
        for one in report.sensitivity[:_MOST_ROWS]
    ]
    lines = table(titles, rows, right=titles[1:])
    return [Line(), *lines, *_rest(len(report.sensitivity), "component")]


def _change(percentage: float) -> str:
    return "0 %" if percentage == 0 else f"{percentage:+.3g} %"
