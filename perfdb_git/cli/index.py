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
from perfdb_git.reports.screen import Line, fact
from perfdb_git.storage.cache_directory import default_cache_directory
from perfdb_git.storage.cache_usage import CacheUsage, cache_usage, clear_cache, has_catalogue

index_group = LazyGroup(
    {
        "build": CommandPlace(__name__, "build", "Index a snapshot now instead of at first use."),
        "status": CommandPlace(__name__, "status", "Say what is indexed, and where."),
        "clear": CommandPlace(__name__, "clear", "Remove every derived file."),
    },
    name="index",
    help="Build, inspect or clear the derived index; it is rebuilt from Git whenever needed.",
)


@click.command("build", short_help="Index a snapshot now instead of at first use.")
@reading_options
@json_option
@click.pass_obj
def build(console: Console, choice: SnapshotChoice) -> int:
    """Index a snapshot now instead of at first use."""
    with console.progress("indexing") as progress:
        snapshot = choice.open(progress)
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
    """Say what is indexed, and where."""
    snapshot = choice.open()
    root = default_cache_directory()
    usage = cache_usage(root)
    indexed = has_catalogue(root, snapshot.evidence.records_digest)
    lines = _usage_lines(usage)
    lines += fact(
        "snapshot", f"{snapshot.commit or 'work tree'}: {'' if indexed else 'not '}indexed"
    )
    return console.answer(
        data={"commit": snapshot.commit, "indexed": indexed, "cache": encoded(usage)},
        lines=lines,
        messages=snapshot_messages(snapshot),
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
        f"{counted(usage.segments, 'segment')}, {counted(usage.catalogues, 'catalogue')}, "
        f"{counted(usage.documents, 'document')}, {counted(usage.verdicts, 'verdict')}, "
        f"{size(usage.size)}"
    )
    return fact("directory", usage.root) + fact("files", counts)
