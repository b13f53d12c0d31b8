"""Comparisons for people: on a terminal, and as Markdown for a pull request."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from perfdb_git.comparison.results import ComparedPair, Comparison, Ratio, Side, Verdict
from perfdb_git.model.estimate import Uncertainty
from perfdb_git.model.values import Scalar
from perfdb_git.reports.escaping import for_markdown
from perfdb_git.reports.quantities import counted, interval, quantity
from perfdb_git.reports.screen import Line, Style, fact, facts, table, wrapped

_SHOWN_NOTES = 6
_SHOWN_UNMATCHED = 5
_STYLES: Mapping[Verdict, Style] = {
    "worse": "bad",
    "better": "good",
    "cannot-tell": "warn",
    "same": "plain",
}
_TITLES = ("verdict", "change", "interval", "p (Holm)", "A", "B", "context")
_FIRST = ("operation", "device", "kind")


def comparison_lines(comparison: Comparison, *, limit: int) -> list[Line]:
    """Return a comparison for a terminal.

    Parameters
    ----------
    comparison : Comparison
        The answer.
    limit : int
        How many pairs to show; the counts are those of all.
    """
    lines = [Line(_headline(comparison), "strong")]
    lines += fact("A", _side(comparison, "A"))
    lines += fact("B", _side(comparison, "B"))
    shared = _shared(comparison.pairs)
    if shared:
        lines += fact("context", context_text(shared))
    shown = comparison.pairs[:limit]
    if shown:
        lines += [Line(), *_pair_lines(comparison, shown, shared), Line()]
    if len(comparison.pairs) > limit:
        lines.append(Line(f"and {len(comparison.pairs) - limit} more; --limit shows more", "faint"))
    for label, text in _remarks(comparison):
        lines += fact(label, text)
    lines += _unmatched_lines(comparison, shared)
    return lines


def comparison_markdown(comparison: Comparison, *, limit: int) -> str:
    """Return a comparison as Markdown, all evidence text in code spans."""
    shared = _shared(comparison.pairs)
    shown = comparison.pairs[:limit]
    lines = [f"### {_headline(comparison)}", ""]
    lines += [f"- {side}: {for_markdown(_side(comparison, side))}" for side in ("A", "B")]
    if shared:
        lines.append(f"- context: {for_markdown(context_text(shared))}")
    if shown:
        lines += ["", f"| {' | '.join(_TITLES)} |", f"|{'---|' * len(_TITLES)}"]
        for pair in shown:
            *cells, context = _cells(pair, shared)
            cells.append(for_markdown(context, in_table=True) if context else "")
            lines.append(f"| {' | '.join(cells)} |")
    if len(comparison.pairs) > limit:
        lines += ["", f"and {len(comparison.pairs) - limit} more"]
    remarks = [(label, text) for label, text in _remarks(comparison)]
    remarks += [
        (f"{side} flagged", f"{_label(pair, shared)}: {text}")
        for pair in shown
        for side, text in _flags(pair)
    ]
    remarks += [
        (f"{side} levels", f"{_label(pair, shared)}: {text}")
        for pair in shown
        for side, text in _levels(pair)
    ]
    remarks += list(_unmatched_remarks(comparison))
    lines.append("")
    lines += [f"- {label}: {for_markdown(text)}" for label, text in remarks]
    return "\n".join(lines).rstrip() + "\n"


def _headline(comparison: Comparison) -> str:
    counts = comparison.verdicts
    if not comparison.pairs:
        return "nothing to compare"
    return (
        f"{counts['worse']} worse, {counts['better']} better, {counts['same']} same, "
        f"{counts['cannot-tell']} cannot tell"
    )


def _side(comparison: Comparison, side: Side) -> str:
    reference = comparison.base if side == "A" else comparison.new
    groups = [pair.base if side == "A" else pair.new for pair in comparison.pairs]
    values: dict[str, set[str]] = {}
    for group in groups:
        for name, found in group.across.items():
            values.setdefault(name, set()).update(map(str, found))
    texts = [f"{name} {', '.join(sorted(found))}" for name, found in sorted(values.items())]
    records = sum(group.records for group in groups)
    where = reference.commit[:12] if reference.commit else "uncommitted files"
    parts = [f"{reference.text} at {where}", *texts, f"{counted(records, 'record')} compared"]
    return "; ".join(dict.fromkeys(parts))


def _pair_lines(
    comparison: Comparison, shown: Sequence[ComparedPair], shared: Mapping[str, Scalar]
) -> list[Line]:
    rows = [_cells(pair, shared) for pair in shown]
    title, *drawn = table(_TITLES, rows, right=("change", "p (Holm)", "A", "B"))
    lines = [title]
    for pair, line in zip(shown, drawn, strict=True):
        lines.append(Line(line.text, _STYLES[pair.verdict]))
        if pair.verdict == "cannot-tell":
            lines += wrapped(f"{pair.reason} [{pair.code}]", head="  ")
        for side, text in _flags(pair):
            lines += wrapped(f"{side}: {text}", head="  ", style="warn")
        for side, text in _levels(pair):
            lines += wrapped(f"{side}: {text}", head="  ", style="faint")
    return lines


def _flags(pair: ComparedPair) -> Iterator[tuple[str, str]]:
    yield from (("A", text) for text in pair.base.flags)
    yield from (("B", text) for text in pair.new.flags)


def _levels(pair: ComparedPair) -> Iterator[tuple[str, str]]:
    """Say what the means over units are, and where the spread comes from."""
    for side, group in (("A", pair.base), ("B", pair.new)):
        found, drawn = group.levels, group.bootstrap
        if found is not None:
            shares = [
                f"{math.sqrt(variance) / found.mean:.2%}"
                for variance in (found.between_variance, found.within_variance)
            ]
            yield (
                side,
                f"mean {_bounded(found.mean, found.interval, pair.unit)} over "
                f"{counted(found.interval.sample_count or 0, pair.sample_unit)}; "
                f"spread between them {shares[0]}, within them {shares[1]}",
            )
        if drawn is not None:
            bounds = _bounded(group.value, drawn, pair.unit)
            yield side, f"median {bounds} by resampling whole {pair.sample_unit}s"


def _bounded(value: float, found: Uncertainty, unit: str) -> str:
    bounds = interval(found.lower, found.upper, value, unit)
    return f"{quantity(value, unit)}, {found.level:.0%} {bounds}"


def _cells(pair: ComparedPair, shared: Mapping[str, Scalar]) -> list[str]:
    return [
        pair.verdict.replace("-", " "),
        "" if pair.ratio is None else change_text(pair.ratio.value),
        "" if pair.ratio is None else interval_text(pair.ratio),
        "" if pair.adjusted_p_value is None else f"{pair.adjusted_p_value:.2g}",
        quantity(pair.base.value, pair.unit),
        quantity(pair.new.value, pair.unit),
        _label(pair, shared),
    ]


def _label(pair: ComparedPair, shared: Mapping[str, Scalar]) -> str:
    return f"{pair.metric} {context_text(without_values(pair.context, shared))}".rstrip()


def change_text(ratio: float) -> str:
    """Return a ratio as a change, such as ``+2.99 %``, or as a factor where it is large."""
    return f"x{ratio:.3g}" if ratio >= 2 or ratio <= 0.5 else f"{(ratio - 1) * 100:+.3g} %"


def interval_text(ratio: Ratio) -> str:
    """Return the interval of a ratio as changes, ``none`` where it has no bounds."""
    if ratio.lower is None or ratio.upper is None:
        return "none"
    return f"[{change_text(ratio.lower)}, {change_text(ratio.upper)}]".replace(" %,", ",")


def _shared(pairs: Sequence[ComparedPair]) -> dict[str, Scalar]:
    return shared_values([pair.context for pair in pairs])


def shared_values(contexts: Sequence[Mapping[str, Scalar]]) -> dict[str, Scalar]:
    """Return the values that all contexts have, to be said once."""
    if not contexts:
        return {}
    first, *rest = contexts
    missing = object()
    return {
        name: value
        for name, value in first.items()
        if all(other.get(name, missing) == value for other in rest)
    }


def without_values(values: Mapping[str, Scalar], shared: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the values that are not said already."""
    missing = object()
    return {name: value for name, value in values.items() if shared.get(name, missing) != value}


def context_text(values: Mapping[str, Scalar]) -> str:
    """Return a context as KEY=VALUE, operation and device first."""
    first = [name for name in _FIRST if name in values]
    names = [*first, *(name for name in values if name not in _FIRST)]
    return " ".join(f"{name}={values[name]}" for name in names)


def _remarks(comparison: Comparison) -> Iterator[tuple[str, str]]:
    yield (
        "judged by",
        f"alpha {comparison.alpha:g} corrected for all tests (Holm), intervals of at least "
        f"{comparison.level:.0%}, threshold {comparison.threshold:.3g}",
    )
    if comparison.across:
        yield "may differ", ", ".join(comparison.across)
    units = Counter(pair.sample_unit for pair in comparison.pairs)
    if units:
        yield "unit", ", ".join(f"{name} in {count}" for name, count in units.most_common())
    yield from _ratio_remarks(comparison)
    codes = Counter(pair.code for pair in comparison.pairs if pair.verdict == "cannot-tell")
    if codes:
        yield "cannot tell", ", ".join(f"{code} {count}" for code, count in codes.most_common())
    notes = Counter(note for pair in comparison.pairs for note in pair.notes)
    for note, count in notes.most_common(_SHOWN_NOTES):
        where = "" if count == len(comparison.pairs) else f" (in {count} of them)"
        yield "note", f"{note}{where}"
    gate = comparison.gate
    if gate is not None:
        word = "fails" if gate.failed else "holds"
        yield (
            "gate",
            f"{word}: {counted(gate.failed, 'context')} worse by more than {gate.threshold:.3g}",
        )


def _ratio_remarks(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Sum up the ratios of each metric: geometric, since they are ratios."""
    ratios: dict[str, list[float]] = {}
    for pair in comparison.pairs:
        if pair.ratio is not None:
            ratios.setdefault(pair.metric, []).append(pair.ratio.value)
    for metric, found in sorted(ratios.items()):
        if len(found) > 1:
            mean = math.exp(statistics.fmean(map(math.log, found)))
            yield (
                "B / A",
                f"{metric}: geometric mean {mean:.4g} over the {len(found)} contexts of both "
                f"sides, from {min(found):.4g} to {max(found):.4g}",
            )


def _unmatched_remarks(comparison: Comparison) -> Iterator[tuple[str, str]]:
    sides: tuple[Side, ...] = ("A", "B")
    for side in sides:
        alone = [item for item in comparison.unmatched if item.side == side]
        if alone:
            yield f"only in {side}", counted(len(alone), "context")
    for hint in comparison.hints:
        yield (
            "hint",
            f"--across {hint.across} would compare {counted(hint.contexts, 'context')} more",
        )


def _unmatched_lines(comparison: Comparison, shared: Mapping[str, Scalar]) -> list[Line]:
    lines: list[Line] = []
    sides: tuple[Side, ...] = ("A", "B")
    for side in sides:
        texts = [
            f"{item.metric} {context_text(without_values(item.context, shared))}"
            for item in comparison.unmatched
            if item.side == side
        ]
        if texts:
            lines += facts(f"only in {side}", texts, most=_SHOWN_UNMATCHED, style="faint")
    for label, text in _unmatched_remarks(comparison):
        if label == "hint":
            lines += fact(label, text)
    return lines
