"""``perfdb index``: the derived files that make answers fast; deleting them loses nothing."""

from __future__ import annotations

import click

from perfdb_git.cli.console import Console
from perfdb_git.cli.groups import CommandPlace, LazyGroup
from perfdb_git.cli.options import (
    SnapshotChoice,
    json_option,
    reading_options,
    snapshot_messages,
)
from perfdb_git.reports.envelope import encoded
from perfdb_git.reports.quantities import counted, size
from perfdb_git.reports.screen import Line, fact, facts
from perfdb_git.storage.cache_collection import clear_cache, collect
from perfdb_git.storage.cache_directory import default_cache_directory
from perfdb_git.storage.cache_files import CacheUsage, cache_usage
from perfdb_git.storage.cache_limit import LIMIT_VARIABLE, cache_limit, parse_size
from perfdb_git.storage.index_verify import IndexFault

_MOST_FAULTS = 20

index_group = LazyGroup(
    {
        "build": CommandPlace(__name__, "build", "Index a snapshot now instead of at first use."),
        "status": CommandPlace(__name__, "status", "Say what is indexed, and where."),
        "verify": CommandPlace(__name__, "verify", "Compare the index of a snapshot with Git."),
        "gc": CommandPlace(__name__, "collect_garbage", "Remove litter and keep the size limit."),
        "clear": CommandPlace(__name__, "clear", "Remove every derived file."),
    },
    name="index",
    help="Build, verify, limit or clear the derived index; it is rebuilt from Git whenever needed.",
)

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Use N processes; by default as many as there are usable CPUs, for little work one.",
)


@click.command("build", short_help="Index a snapshot now instead of at first use.")
@reading_options
@jobs_option
@json_option
@click.pass_obj
def build(console: Console, choice: SnapshotChoice, jobs: int | None) -> int:
    """Index a snapshot now instead of at first use.

    Several may build at once, and one that is stopped leaves nothing broken.
    """
    with console.progress("indexing") as progress:
        snapshot = choice.open(progress, jobs=jobs)
        snapshot.evidence.index.build()
        series = snapshot.evidence.series()
    built = snapshot.evidence.index.segments_built
    records = sum(item.rows for item in series)
    sets = sum(item.record_sets for item in series)
    line = (
        f"{counted(records, 'record')} in {counted(sets, 'record set')} indexed, "
        f"{counted(built, 'set')} of them now"
    )
    return console.answer(
        data={
            "commit": snapshot.commit,
            "series": len(series),
            "record_sets": sets,
            "records": records,
            "built": built,
        },
        lines=[Line(line)],
        messages=snapshot_messages(snapshot),
    )


@click.command("status", short_help="Say what is indexed, and where.")
@reading_options
@json_option
@click.pass_obj
def status(console: Console, choice: SnapshotChoice) -> int:
    """Say what is indexed, and where; nothing is made."""
    snapshot = choice.open()
    coverage = snapshot.evidence.index.coverage()
    usage, limit = cache_usage(default_cache_directory()), cache_limit()
    of_all = f"{coverage.indexed:,} of {counted(coverage.record_sets, 'record set')} indexed"
    if coverage.indexed == coverage.record_sets and not coverage.has_catalogue:
        of_all += ", but not listed yet"
    lines = _usage_lines(usage)
    lines += fact("limit", f"{_limit_text(limit)}, by {LIMIT_VARIABLE} or 'perfdb index gc'")
    lines += fact("snapshot", f"{snapshot.commit or 'work tree'}: {of_all}")
    return console.answer(
        data={
            "commit": snapshot.commit,
            "indexed": coverage.is_complete,
            "record_sets": coverage.record_sets,
            "indexed_record_sets": coverage.indexed,
            "cache": encoded(usage),
            "limit": limit,
        },
        lines=lines,
        messages=snapshot_messages(snapshot),
    )


@click.command("verify", short_help="Compare the index of a snapshot with Git.")
@reading_options
@jobs_option
@json_option
@click.pass_obj
def verify(console: Console, choice: SnapshotChoice, jobs: int | None) -> int:
    """Derive the index of a snapshot from Git once more and compare every file with it.

    What is truncated, damaged or different is named and removed; the next command makes it anew.
    Exit status 1 if there was any.
    """
    with console.progress("verifying") as progress:
        snapshot = choice.open(progress, jobs=jobs)
        found = snapshot.evidence.index.verify()
    compared = found.record_sets - found.not_indexed
    line = f"{counted(compared, 'record set')} compared with Git, {found.not_indexed:,} not indexed"
    lines = [Line(f"{line}, {counted(len(found.faults), 'index file')} wrong")]
    lines += facts("removed", [_fault_text(item) for item in found.faults], most=_MOST_FAULTS)
    return console.answer(
        data={"commit": snapshot.commit, **encoded(found)},
        lines=lines,
        status="findings" if found.faults else "ok",
        messages=snapshot_messages(snapshot),
    )


@click.command("gc", short_help="Remove litter and keep the size limit.")
@click.option(
    "--max-size",
    metavar="SIZE",
    help=f"Keep at most this much, such as 500MB or 4GiB, or none; by default {LIMIT_VARIABLE}.",
)
@json_option
@click.pass_obj
def collect_garbage(console: Console, max_size: str | None) -> int:
    """Remove what ended processes left half-written, formats of older versions and, above the
    size limit, what was unused for longest. What a running process has used is kept.

    Builds do the same after many new record sets, and once a day.
    """
    limit = cache_limit() if max_size is None else parse_size(max_size)
    root = default_cache_directory()
    done = collect(root, limit)
    removed = (
        f"{counted(done.unfinished, 'unfinished file')}, "
        f"{counted(done.outdated, 'outdated file')}, "
        f"{counted(done.evicted, 'unused file')}, {size(done.freed)}"
    )
    left = f"{size(done.size)}, {size(done.in_use)} of it in use, the limit is {_limit_text(limit)}"
    return console.answer(
        data={"root": str(root), **encoded(done)},
        lines=fact("directory", str(root)) + fact("removed", removed) + fact("left", left),
    )


@click.command("clear", short_help="Remove every derived file.")
@json_option
@click.pass_obj
def clear(console: Console) -> int:
    """Remove every derived file, of all repositories; the next command makes what it needs."""
    usage = clear_cache(default_cache_directory())
    return console.answer(
        data={"removed": encoded(usage)},
        lines=[Line("removed"), *_usage_lines(usage)],
    )


def _usage_lines(usage: CacheUsage) -> list[Line]:
    counts = (
        f"{counted(usage.segments, 'segment')}, "
        f"{counted(usage.directories + usage.catalogues, 'catalogue')}, "
        f"{counted(usage.documents, 'document')}, {counted(usage.verdicts, 'verdict')}, "
        f"{size(usage.size)}"
    )
    return fact("directory", usage.root) + fact("files", counts)


def _limit_text(limit: int | None) -> str:
    return "none" if limit is None else size(limit)


def _fault_text(fault: IndexFault) -> str:
    return f"{fault.file} of {fault.path}: {fault.fault}"
