"""A plan beside an oracle's measurements, for people."""

from __future__ import annotations

from collections.abc import Sequence

from perfdb_git.plans.oracle_comparison import ComponentError, GateOutcome, OracleComparison
from perfdb_git.reports.quantities import counted, quantity
from perfdb_git.reports.screen import Line, fact, facts, table

_NONE = "-"
_SHORT = 12
_MOST = 40


def oracle_lines(found: OracleComparison) -> list[Line]:
    """Return what was left aside, every component, the figures, and the gates."""
    titles = ["query", "times", "estimate", "measured", "error", "method", "rows", "source"]
    rows = [_row(item) for item in found.components]
    right = ("times", "estimate", "measured", "error", "rows")
    lines = [Line(f"{found.plan} beside {_names(found)}", "strong"), Line()]
    lines += [*table(titles, rows, right=right), Line()]
    lines += _figures(found)
    lines += _excluded(found)
    for source in found.oracles:
        lines += fact("oracle", f"{source.file} (sha256 {source.sha256[:_SHORT]})")
    lines += fact("commit", found.commit or "none: uncommitted files of the work tree")
    digest = found.policy.digest.removeprefix("sha256:")[:_SHORT]
    lines += fact("policy", f"{found.policy.name} (sha256 {digest})")
    for gate in found.gates:
        lines += _gate(gate)
    return lines


def _names(found: OracleComparison) -> str:
    return ", ".join(source.file for source in found.oracles)


def _row(item: ComponentError) -> list[str]:
    return [
        item.name,
        f"{item.multiplicity:,}",
        _NONE if item.estimate_s is None else quantity(item.estimate_s, "s"),
        _NONE if item.measured_s is None else quantity(item.measured_s, "s"),
        _NONE if item.error_pct is None else f"{item.error_pct:+.1f} %",
        item.code if item.method is None else item.method,
        f"{item.rows:,}",
        _source(item),
    ]


def _source(item: ComponentError) -> str:
    if item.calibration is not None:
        return f"calibration {item.calibration[:_SHORT]}"
    return item.provider or _NONE


def _figures(found: OracleComparison) -> list[Line]:
    coverage = found.coverage
    by_method = ", ".join(f"{count} {method}" for method, count in coverage.by_method.items())
    subtotals = (
        f"{quantity(found.estimate_subtotal_s, 's')} for "
        f"{quantity(found.measured_subtotal_s, 's')} measured, {found.subtotal_error_pct:+.1f} %"
    )
    worst = next(item for item in found.components if item.name == found.worst)
    return [
        *fact(
            "coverage",
            f"{coverage.compared} of {coverage.queries} compared: {coverage.answered} answered "
            f"({by_method}), {coverage.measured} measured",
        ),
        *fact("subtotal", subtotals),
        *fact("mean error", f"{found.component_mape_pct:.1f} % of a component (MAPE)"),
        *fact("worst", f"{worst.name}, {worst.error_pct:+.1f} %"),
        *fact(
            "reads", f"{counted(len(found.reads), 'row')} of the oracle, after the last estimate"
        ),
    ]


def _excluded(found: OracleComparison) -> list[Line]:
    isolation = found.isolation
    sets = [
        f"{item.path} ({item.ground}: {item.oracle}"
        + (")" if item.shared_rows is None else f", {counted(item.shared_rows, 'row')})")
        for item in isolation.record_sets
    ]
    calibrations = [
        f"{item.operation} on {item.device}, {item.sha256[:_SHORT]}, trained on "
        + ", ".join(address[:_SHORT] for address in item.record_sets)
        for item in isolation.calibrations
    ]
    return _listed("excluded", sets, "no record set holds its rows") + _listed(
        "excluded", calibrations, "no calibration was trained on its rows"
    )


def _listed(label: str, texts: Sequence[str], none: str) -> list[Line]:
    return facts(label, texts, most=_MOST) if texts else fact(label, none)


def _gate(gate: GateOutcome) -> list[Line]:
    verdict = "passed" if gate.passed else "failed"
    text = f"{verdict}: {gate.gate} {gate.limit_pct:g} %, found {gate.value_pct:.1f} %"
    return fact("gate", text, "good" if gate.passed else "bad")
