"""Running a benchmark and storing a complete record set, or nothing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from perfdb_git import __version__
from perfdb_git.environment.capture import CapturedEnvironment, capture_environment
from perfdb_git.environment.names import redactor_of_this_machine
from perfdb_git.environment.processor import passing_facts
from perfdb_git.errors import UsageError
from perfdb_git.formats.canonical import canonical_record_set
from perfdb_git.formats.codec import encode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.formats.redaction import Redactor
from perfdb_git.formats.schemas import SchemaStore
from perfdb_git.model.records import MeasurementProtocol, Quantity, RecordSetHeader, Source
from perfdb_git.model.values import JsonValue
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.recording.requests import RecordedSet, RecordReport, RecordRequest
from perfdb_git.recording.runs import (
    Progress,
    Run,
    find_program,
    program_digest,
    run_all,
    timer_resolution_ns,
)
from perfdb_git.recording.tool_output import (
    OUTPUT_NAME,
    ReadSet,
    merge_repetitions,
    read_outputs,
    samples_of_every_row,
)
from perfdb_git.recording.tools import TABLE, find_reader
from perfdb_git.recording.wall_time import stated_point, wall_time_protocol, wall_time_set
from perfdb_git.storage.append import write_new_files
from perfdb_git.storage.layout import manifest_path, record_set_path
from perfdb_git.storage.segments import split_record_set

TOOL = "perfdb record"
IMPORTER = "record/1"


def record_benchmark(
    request: RecordRequest,
    vocabulary: Vocabulary,
    *,
    redactor: Redactor | None = None,
    progress: Progress | None = None,
) -> RecordReport:
    """Capture the environment, run the command, and write what it showed.

    Parameters
    ----------
    request : RecordRequest
        What to run and how to store it.
    vocabulary : Vocabulary
        That of the repository's work tree.
    redactor : Redactor or None
        None takes one that knows the present user and host.
    progress : callable or None
        Told after each run.

    Raises
    ------
    UsageError
        A wrong request, found before anything runs.
    InvalidInputError
        A run that fails, or output that cannot be stored. Nothing is written then.
    RepositoryUnavailableError
        The repository cannot be written.
    """
    redactor = redactor or redactor_of_this_machine()
    recording = _Recording(request, vocabulary, redactor)
    if request.tool is None:
        runs = run_all(request.run, redactor, progress=progress)
        sets = recording.wall_time(runs)
    else:
        runs = run_all(request.run, redactor, inspect=recording.inspect, progress=progress)
        sets = recording.tool_output(runs)
    return recording.write(sets, runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewSet:
    path: str
    content: bytes
    report: RecordedSet


class _Recording:
    """One recording; making it refuses what can be refused before the command runs."""

    def __init__(self, request: RecordRequest, vocabulary: Vocabulary, redactor: Redactor) -> None:
        self._request = request
        self._vocabulary = vocabulary
        self._program = find_program(request.run)
        self._digest = program_digest(self._program)
        self._reader = (
            None
            if request.tool is None
            else find_reader(request.tool, mapping=request.mapping, stated=request.pairs)
        )
        self._command = shlex.join(redactor.words(request.run.command))
        self._environment: CapturedEnvironment = capture_environment(
            request.capture, vocabulary, redactor=redactor
        )
        self._name = redactor.text(self._program.name)
        manifest = self._environment.manifest
        self._point = (
            stated_point(request.pairs, vocabulary, device=manifest.device, program=self._name)
            if request.tool is None
            else {}
        )
        self._start = datetime.now(UTC)
        stamp = self._start.strftime("%Y%m%dT%H%M%SZ")
        self._session = redactor.text(request.session or "") or f"{self._name}-{stamp}"

    def wall_time(self, runs: Sequence[Run]) -> list[_NewSet]:
        """Return the record set of the runs' wall times."""
        manifest = self._environment.manifest
        header, rows = wall_time_set(
            self._point,
            runs,
            self._vocabulary,
            source=self._source(file=self._name, sha256=self._digest),
            session=self._session,
            environment=self._environment.sha256,
            protocol=wall_time_protocol(
                warmup=self._request.run.warmup,
                repetitions=len(runs),
                resolution_ns=timer_resolution_ns(),
                clock_state=manifest.clock_policy,
                power_state=manifest.power_policy,
            ),
            observed=self._observed(),
        )
        return [_new_set(header, rows)]

    def tool_output(self, runs: Sequence[Run]) -> list[_NewSet]:
        """Return the record sets that the tool's importer makes of the runs' outputs."""
        repetitions = self._read(runs)
        sha256 = sha256_hex(b"".join(run.output for run in runs))
        observed = self._observed()
        return [
            _new_set(self._completed(item, sha256, observed), item.rows)
            for item in merge_repetitions(repetitions)
        ]

    def inspect(self, run: Run) -> None:
        """Refuse output that cannot be read, or is of another device."""
        for item in self._read([run])[0]:
            self._refuse_other_device(item.header)

    def _read(self, runs: Sequence[Run]) -> list[list[ReadSet]]:
        assert self._reader is not None
        return read_outputs(
            runs,
            self._reader,
            mapping=self._request.mapping,
            stated=self._stated(),
            repository=self._request.repository,
        )

    def _stated(self) -> tuple[str, ...]:
        """Return the stated facts, with the device that was captured where none is among them."""
        pairs, device = self._request.pairs, self._environment.manifest.device
        states_device = any(pair.startswith("device=") for pair in pairs)
        if self._request.tool == TABLE or states_device or device is None:
            return pairs
        return (*pairs, f"device={device}")

    def _refuse_other_device(self, header: RecordSetHeader) -> None:
        device = self._environment.manifest.device
        if device is not None and header.device != device:
            raise UsageError(
                f"the output is of device {header.device}, the environment has {device}",
                code="other-device",
                remedy="name the device that was measured with --device",
            )

    def _completed(
        self, item: ReadSet, sha256: str, observed: dict[str, JsonValue]
    ) -> RecordSetHeader:
        """Return a header with what the tool's output could not say of machine and runs."""
        header = item.header
        self._refuse_other_device(header)
        source = header.source
        return replace(
            header,
            session=self._session,
            environment=self._environment.sha256,
            protocol=self._tool_protocol(item),
            observed={**header.observed, **observed},
            source=replace(
                source,
                file=OUTPUT_NAME,
                sha256=sha256,
                git_blob=None,
                keys={**source.keys, "command": self._command},
                measured_at=source.measured_at or self._measured_at(),
            ),
        )

    def _tool_protocol(self, item: ReadSet) -> MeasurementProtocol:
        run, manifest = self._request.run, self._environment.manifest
        protocol = item.header.protocol
        notes = [
            *protocol.notes,
            f"Runs of the command: {run.warmup} unrecorded, then {run.repetitions} recorded. Each "
            "is a process of its own; the warm-up stated above is in every one of them.",
        ]
        resolution = protocol.timer_resolution
        if resolution is None:
            resolution = Quantity(value=float(timer_resolution_ns()), unit="ns")
            notes.append(
                "The timer resolution is that of the system's clock; the tool's may be coarser."
            )
        return replace(
            protocol,
            repetitions=samples_of_every_row(item) or protocol.repetitions,
            timer_resolution=resolution,
            clock_state=protocol.clock_state or manifest.clock_policy,
            power_state=protocol.power_state or manifest.power_policy,
            notes=tuple(notes),
        )

    def _source(self, *, file: str, sha256: str) -> Source:
        return Source(
            tool=TOOL,
            revision=__version__,
            file=file,
            sha256=sha256,
            git_blob=None,
            license=None,
            keys={"command": self._command},
            labels={},
            importer=IMPORTER,
            mapping=None,
            measured_at=self._measured_at(),
        )

    def _measured_at(self) -> str:
        return self._start.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _observed(self) -> dict[str, JsonValue]:
        return {**self._environment.observed, "after_the_runs": passing_facts()}

    def write(self, sets: Sequence[_NewSet], runs: Sequence[Run]) -> RecordReport:
        """Write the sets and their manifest, all or none."""
        environment = self._environment
        files = {item.path: item.content for item in sets}
        files[manifest_path(environment.sha256)] = environment.content
        dry = self._request.dry_run
        written = tuple(sorted(files)) if dry else write_new_files(self._request.repository, files)
        return RecordReport(
            session=self._session,
            command=self._command,
            record_sets=tuple(item.report for item in sets),
            environment=environment,
            seconds=tuple(run.nanoseconds / 10**9 for run in runs),
            written=written,
            dry_run=dry,
        )


def _new_set(header: RecordSetHeader, rows: Sequence[Sequence[object]]) -> _NewSet:
    value = encode(header)
    assert isinstance(value, dict)
    content = canonical_record_set(value, rows)
    sha256 = sha256_hex(content)
    path = record_set_path(header.device, header.operation, header.session, sha256)
    # What a reader would refuse is never written.
    split_record_set(content, document=path, schemas=SchemaStore())
    samples = sum(
        len(cell) if isinstance(cell, list | tuple) else cell is not None
        for row in rows
        for cell, column in zip(row, header.columns, strict=True)
        if column.role == "metric"
    )
    report = RecordedSet(
        path=path,
        sha256=sha256,
        device=header.device,
        operation=header.operation,
        rows=len(rows),
        samples=samples,
    )
    return _NewSet(path=path, content=content, report=report)
