"""Import of whole aiconfigurator databases: every kind of table, value for value."""

from __future__ import annotations

import itertools
import random
import shutil
import sys
from collections import Counter
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.checks.registry import run_checks
from perfdb_git.errors import (
    InvalidInputError,
    InvalidRowsError,
    MissingExtraError,
    RepositoryUnavailableError,
    UsageError,
)
from perfdb_git.formats.canonical import canonical_record_set, canonical_record_set_of_texts
from perfdb_git.importers.aiconfigurator.database_import import import_database
from perfdb_git.importers.aiconfigurator.kinds import KINDS
from perfdb_git.importers.aiconfigurator.report import (
    DatabaseImportReport,
    DatabaseImportRequest,
)
from perfdb_git.importers.aiconfigurator.row_text import cell_texts, row_texts
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.storage.sources import WorktreeSource
from tests.importers.aiconfigurator_tables import (
    LAYOUTS,
    PAIRS,
    REVISION,
    Columns,
    Label,
    Wheel,
    place_of,
    table_of,
)
from tests.importers.import_fixtures import PROJECT, Evidence, RecordSet

pytest.importorskip("pyarrow")

SIDECAR = """\
schema_version: 1
provenance: collected
runtime:
  framework: trtllm
  version: 1.3.0rc20
  image: registry.example.org/someone/release:1.3.0rc20
  image_digest: sha256:1532b38814b3faf2affdb5ef01ca91468685d314ffb7e8926a0567595355ed88
  abi: {driver: 580.126.20, cuda: 13.0.2, fabric_identity: 'single-node:rack7-n3'}
tables:
  gemm_perf:
    collector_ref: 8cb6658da404369d68dec6d61cb2f7bc646d8470
    collected_at: '2026-08-05'
    rows: 12
    status: partial
"""


@pytest.fixture
def wheel() -> Wheel:
    return Wheel()


def run(evidence: Evidence, wheel: Wheel, **options: Any) -> DatabaseImportReport:
    database = wheel.packed(evidence.upstream)
    return import_database(
        DatabaseImportRequest(repository=evidence.root, database=database, **options)
    )


def rows_of(item: RecordSet) -> list[dict[str, Any]]:
    """Every fact of each row: keys of the source, dimensions and metrics."""
    names = [column["name"] for column in item.document["columns"]]
    keys = {f"source {name}": value for name, value in item.source["keys"].items()}
    return [
        {**keys, **item.context, **dict(zip(names, row, strict=True))}
        for row in item.document["rows"]
    ]


def gemm(**changed: list[Any]) -> Columns:
    return {**table_of("gemm_perf"), **changed}


def test_layouts_are_those_of_every_kind() -> None:
    assert LAYOUTS.keys() == KINDS.keys()
    assert len(KINDS) == 45


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_value_of_every_kind_is_kept(evidence: Evidence, wheel: Wheel, kind: str) -> None:
    columns = table_of(kind)
    count = len(columns["op_name"])
    wheel.add(kind, columns)
    report = run(evidence, wheel)
    found = [row for item in evidence.record_sets() for row in rows_of(item)]
    assert report.records == len(found) == count * (2 if kind in PAIRS else 1)
    assert report.tables[0].unstated_columns == ()
    # Each upstream column is there under its own name or under that of what it states.
    meanings = _meanings(kind)
    for way in ("moe_dispatch", "moe_combine") if kind in PAIRS else (None,):
        of_way = [row for row in found if way in (None, row["operation"])]
        names = [n for n in columns if way is None or n in meanings[way] or n in _KEYS]
        wanted = Counter(_upstream(columns, names, row) for row in range(count))
        assert Counter(_recorded(of_way, names, meanings, row) for row in of_way) == wanted


_KEYS = ("framework", "version", "device", "op_name", "kernel_source")


def _meanings(kind: str) -> dict[str, dict[str, str]]:
    """By operation, what each upstream column states."""
    found: dict[str, dict[str, str]] = {}
    for operation in KINDS[kind].operations:
        metrics = {name: metric.name for name, metric in operation.metrics.items()}
        found[operation.name] = {**operation.numbers, **metrics}
    return found


def _upstream(columns: Columns, names: list[str], row: int) -> Hashable:
    return tuple(columns[name][row] for name in names)


def _recorded(
    _: object, names: list[str], meanings: Mapping[str, Mapping[str, str]], row: dict[str, Any]
) -> Hashable:
    stated = meanings[row["operation"]]
    values = []
    for name in names:
        key = stated.get(name, name)
        values.append(row[key] if key in row and name in stated else _source(row, name))
    return tuple(values)


def _source(row: dict[str, Any], name: str) -> Any:
    return row[f"source {name}"] if f"source {name}" in row else row[name]


def test_checks_find_nothing_in_an_imported_database(evidence: Evidence, wheel: Wheel) -> None:
    for kind, system in itertools.product(sorted(KINDS), ("h200_sxm", "b200_sxm")):
        device = {"h200_sxm": "NVIDIA H200", "b200_sxm": "NVIDIA B200"}[system]
        columns = table_of(kind, 9 if system == "h200_sxm" else 8, Label(device=device))
        wheel.add(kind, columns, system=system)
    report = run(evidence, wheel)
    assert len(report.tables) == 90
    shutil.copytree(PROJECT / "schemas", evidence.root / "schemas")
    source = WorktreeSource(evidence.root)
    # Made-up tables of some kinds have the same numbers, and there is no policy here.
    findings = run_checks(source, ignore=["same-rows", "no-default-policy"])
    assert findings == ()


MAPPED = {
    "gemm_perf": "aiconfigurator-gemm",
    "context_attention_perf": "aiconfigurator-context-attention",
    "generation_attention_perf": "aiconfigurator-generation-attention",
    "nccl_perf": "aiconfigurator-nccl",
    "custom_allreduce_perf": "aiconfigurator-custom-allreduce",
}


def mapped_table(kind: str) -> Columns:
    """A table in the narrower layout that the mappings read."""
    columns = table_of(kind, 8, Label(version="1.3.0"))
    for name in ("power", "power_limit", "backend"):
        columns.pop(name, None)
    if "attention" in kind:
        columns["kernel_source"] = ["torch_flow"] * 8
    if kind == "gemm_perf":
        columns["gemm_dtype"] = ["bfloat16", "fp8"] * 4
    if kind == "custom_allreduce_perf":
        columns |= {"kernel_source": ["TRTLLM"] * 8, "implementation": ["trtllm"] * 8}
    return columns


def meaning(items: list[RecordSet]) -> Counter[Hashable]:
    """Kind, session, context, labels, protocol, environment, dimensions and metrics of each row."""
    found: Counter[Hashable] = Counter()
    for item in items:
        head = item.document
        columns = head["columns"]
        fixed = (head["kind"], head["session"], head["environment"], str(head["protocol"]))
        for row in head["rows"]:
            cells = {
                (column["name"], column.get("statistic"), column.get("unit")): cell
                for column, cell in zip(columns, row, strict=True)
                if column["role"] != "source"
            }
            dimensions = {
                **{name: value for name, value in item.context.items() if value is not None},
                **{name: cell for (name, statistic, _), cell in cells.items() if not statistic},
            }
            metrics = {key: cell for key, cell in cells.items() if key[1]}
            labels = tuple(sorted(item.source["labels"].items()))
            facts = (tuple(sorted(dimensions.items())), tuple(sorted(metrics.items())))
            found[(*fixed, labels, *facts)] += 1
    return found


@pytest.mark.parametrize("kind", sorted(MAPPED))
def test_means_the_same_as_an_import_with_a_mapping(tmp_path: Path, kind: str) -> None:
    by_mapping, by_wheel = Evidence(tmp_path / "mapping"), Evidence(tmp_path / "wheel")
    wheel = Wheel()
    path = wheel.add(kind, mapped_table(kind), version="1.3.0")
    file = by_mapping.put(path, wheel.files[path])
    by_mapping.run(MAPPED[kind], file, source_revision=REVISION)
    run(by_wheel, wheel)
    assert meaning(by_wheel.record_sets()) == meaning(by_mapping.record_sets())
    # What came with the mapping is not added again.
    again = run(by_mapping, wheel)
    assert (again.records, again.known) == (0, 8)


def test_repeats_labels_and_zeros_are_kept_and_reported(evidence: Evidence, wheel: Wheel) -> None:
    path = wheel.add(
        "gemm_perf",
        gemm(
            m=[4] * 12,
            n=[8] * 12,
            k=[16] * 12,
            gemm_dtype=["bfloat16"] * 12,
            version=["1.3.0rc20"] * 10 + ["unknown", "1.2.0"],
            device=["NVIDIA H200"] * 11 + ["NVIDIA H100"],
            latency=[0.5, 0.0, *([0.25] * 10)],
        ),
    )
    table = run(evidence, wheel).tables[0]
    assert (table.file, table.rows, table.records, table.repeated_rows) == (path, 12, 12, 10)
    said = {(item.label, item.rows_say, item.path_says, item.rows) for item in table.mislabelled}
    assert said == {
        ("directory_version", "unknown", "1.3.0rc20", 1),
        ("directory_version", "1.2.0", "1.3.0rc20", 1),
        ("device_label", "NVIDIA H100", "NVIDIA H200", 1),
    }
    assert table.unresolved_times == 1
    repeats = evidence.one(version="1.3.0rc20")
    assert repeats.column("latency", "mean") == [0.5, None, *([0.25] * 8)]
    assert "states 0" in repeats.document["null_reasons"]["latency"]
    unknown = evidence.one(version="unknown")
    assert unknown.context["runtime_revision"] is None
    assert unknown.source["labels"] == {"directory_version": "1.3.0rc20"}
    foreign = evidence.one(version="1.2.0")
    assert foreign.context["runtime_revision"] == "1.2.0"
    assert (foreign.context["device"], foreign.context["form_factor"]) == ("h100_80g", None)
    assert foreign.source["labels"]["device_label"] == "NVIDIA H200"


def test_sidecar_facts_stand_in_the_header(evidence: Evidence, wheel: Wheel) -> None:
    path = wheel.add("gemm_perf", gemm(gemm_dtype=["bfloat16"] * 12))
    wheel.sidecar(path, SIDECAR)
    report = run(evidence, wheel)
    assert report.tables[0].status == "partial"
    item = evidence.one(operation="gemm")
    assert item.source["measured_at"] == "2026-08-05"
    assert item.source["revision"] == REVISION
    stated = item.document["observed"]["collection_meta"]
    assert stated["provenance"] == "collected"
    assert stated["table"]["collector_ref"] == "8cb6658da404369d68dec6d61cb2f7bc646d8470"
    assert stated["runtime"]["image_digest"].startswith("sha256:1532b388")
    assert "rack7" not in str(item.document)
    # A registry's path may name a user.
    assert stated["runtime"]["image"] == "release:1.3.0rc20"
    manifests = [p.read_text() for p in (evidence.root / "evidence/manifests").iterdir()]
    assert len(manifests) == 1
    assert '"driver": "580.126.20"' in manifests[0]
    assert '"trtllm": "1.3.0rc20"' in manifests[0]


def test_power_and_its_limit(evidence: Evidence, wheel: Wheel) -> None:
    columns = table_of("generation_attention_perf", 2)
    wheel.add("generation_attention_perf", columns)
    run(evidence, wheel)
    items = evidence.record_sets()
    assert sorted(v for item in items for v in item.column("power", "mean")) == columns["power"]
    assert {item.document["protocol"]["power_state"] for item in items} == {"power limit 700 W"}


def test_times_below_the_roofline_are_counted(evidence: Evidence, wheel: Wheel) -> None:
    # 2 * 4096^3 operations take 0.139 ms at 989 Tera operations a second.
    wheel.add(
        "gemm_perf",
        {
            **table_of("gemm_perf", 4),
            "gemm_dtype": ["bfloat16", "bfloat16", "bfloat16", "nvfp4"],
            "m": [4096] * 4,
            "n": [4096] * 4,
            "k": [4096] * 4,
            "latency": [0.138, 0.140, 0.069, 0.001],
        },
    )
    roofline = run(evidence, wheel).tables[0].roofline
    assert (roofline.judged, roofline.below) == (3, 2)
    assert roofline.ratio == pytest.approx(0.069 / (2 * 4096**3 / 989e12 * 1e3))
    assert roofline.example is not None
    assert "m=4096, n=4096, k=4096" in roofline.example
    del wheel.files["aiconfigurator_core/systems/h200_sxm.yaml"]
    assert run(evidence, wheel, dry_run=True).tables[0].roofline.judged == 0


def test_importing_again_adds_only_what_is_new(evidence: Evidence, wheel: Wheel) -> None:
    path = wheel.add("gemm_perf", gemm(latency=[0.5] * 12))
    other = wheel.add("moe_perf")
    assert run(evidence, wheel).records == 24
    files = evidence.files()
    again = run(evidence, wheel)
    assert (again.records, again.known, again.written) == (0, 24, 0)
    # What is odd about a database does not depend on what is there already.
    assert again.tables[0].roofline.judged == 4
    assert again.tables[0].operations == ("gemm",)
    assert evidence.files() == files
    # A later wheel: one time changed, one row twice.
    longer = gemm(latency=[0.5] * 11 + [0.25])
    wheel.put(path, {name: [*cells, cells[0]] for name, cells in longer.items()})
    later = run(evidence, wheel, source_revision="aiconfigurator-core==0.13.0")
    assert {t.file: (t.records, t.known) for t in later.tables} == {path: (2, 11), other: (0, 12)}
    assert set(files) < set(evidence.files())
    added = [r for r in evidence.record_sets() if r.source["revision"] != REVISION]
    assert sorted(v for r in added for v in r.column("latency", "mean")) == [0.25, 0.5]


def test_a_folder_gives_the_same_files_as_the_wheel(tmp_path: Path, wheel: Wheel) -> None:
    for kind in ("gemm_perf", "nccl_perf"):
        wheel.add(kind)
    packed = Evidence(tmp_path / "packed")
    run(packed, wheel)
    unpacked = wheel.unpacked(tmp_path / "site-packages")
    for number, place in enumerate((unpacked, unpacked / "aiconfigurator_core")):
        evidence = Evidence(tmp_path / f"unpacked{number}")
        request = DatabaseImportRequest(repository=evidence.root, database=place)
        assert import_database(request).records == 24
        assert evidence.files() == packed.files()


def test_unknown_columns_are_kept_and_unknown_tables_named(
    evidence: Evidence, wheel: Wheel
) -> None:
    wheel.add("gemm_perf", {**gemm(), "waves": list(range(12)), "tile": ["a", "b"] * 6})
    wheel.put(place_of("new_kind_perf"), gemm())
    report = run(evidence, wheel)
    assert report.tables[0].unstated_columns == ("waves",)
    assert report.unknown_tables == (place_of("new_kind_perf"),)
    assert sorted(v for item in evidence.record_sets() for v in item.column("waves")) == list(
        range(12)
    )
    assert {item.source["keys"]["tile"] for item in evidence.record_sets()} == {"a", "b"}


BAD = {
    "latency": [-0.5, "is negative"],
    "m": [0, "is not positive"],
    "gemm_dtype": ["fp3", "'fp3' is not a label that is known"],
    "device": ["NVIDIA X900", "'NVIDIA X900' is not a device that is known and in the vocabulary"],
    "op_name": ["gemv", "is an observation of no operation"],
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_rows_stop_everything_or_are_listed(
    evidence: Evidence, wheel: Wheel, name: str
) -> None:
    value, reason = BAD[name]
    columns = gemm()
    columns[name][5] = value
    path = wheel.add("gemm_perf", columns)
    wheel.add("moe_perf")
    with pytest.raises(InvalidRowsError) as caught:
        run(evidence, wheel)
    assert len(caught.value.rows) == 1
    assert f"{path}: row 6:" in caught.value.rows[0]
    assert reason in caught.value.rows[0]
    assert evidence.files() == []
    report = run(evidence, wheel, skip_bad_rows=True)
    assert report.records == 23
    assert [table.bad_rows for table in report.tables] == [1, 0]
    items = [i for i in evidence.record_sets() if i.context["operation"] == "gemm"]
    assert all(reason in item.source["skipped"][0] for item in items)


def test_many_bad_rows_are_named_by_their_ranges(evidence: Evidence, wheel: Wheel) -> None:
    latency = [0.5] * 100
    latency[3] = -1.0
    latency[50::2] = [-1.0] * 25
    columns = table_of("gemm_perf", 100)
    wheel.add("gemm_perf", {**columns, "latency": latency, "device": ["X"] * 100})
    with pytest.raises(InvalidRowsError, match="100 bad rows") as caught:
        run(evidence, wheel)
    negative, unknown = caught.value.rows
    assert "rows 4, 51, 53, 55" in negative
    assert negative.endswith("87, … (26 rows): column 'latency': is negative")
    assert unknown.endswith(
        "rows 1-100: column 'device': 'X' is not a device that is known and in the vocabulary"
    )


def test_numbers_that_no_document_holds(evidence: Evidence, wheel: Wheel) -> None:
    import numpy as np

    code: Any = np.array([2**63] + [1] * 11, dtype=np.uint64)
    odd = {"code": code, "share": [float("inf")] + [0.5] * 11}
    path = wheel.add("gemm_perf", {**gemm(), **odd, "gap": [None] + [1.5] * 11})
    with pytest.raises(InvalidRowsError, match="1 bad row") as caught:
        run(evidence, wheel)
    assert [row.removeprefix(f"{path}: ") for row in caught.value.rows] == [
        "row 1: column 'code': is beyond ±(2^53 - 1)",
        "row 1: column 'share': is infinite",
    ]


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_empty_cells_are_bad(evidence: Evidence, wheel: Wheel, missing: float | None) -> None:
    wheel.add("gemm_perf", gemm(latency=[0.5] * 11 + [missing]))
    with pytest.raises(InvalidRowsError, match="row"):
        run(evidence, wheel)


def test_tables_that_are_not_what_they_seem(evidence: Evidence, wheel: Wheel) -> None:
    path = place_of("gemm_perf")
    columns = gemm()
    del columns["gemm_dtype"]
    wheel.put(path, columns)
    with pytest.raises(InvalidInputError, match="lacks the columns 'gemm_dtype'"):
        run(evidence, wheel)
    without_m = gemm()
    del without_m["m"]
    wheel.put(path, without_m)
    with pytest.raises(InvalidInputError, match="lacks the columns 'm'"):
        run(evidence, wheel)
    wheel.put(path, {**gemm(), "shapes": [[1, 2]] * 12})
    with pytest.raises(InvalidInputError, match="'shapes' has the type"):
        run(evidence, wheel)
    wheel.files[path] = b"version https://git-lfs.github.com/spec/v1\n"
    with pytest.raises(InvalidInputError, match="not a readable Parquet"):
        run(evidence, wheel)
    assert evidence.files() == []


def test_a_vocabulary_without_the_operation(
    evidence: Evidence, wheel: Wheel, vocabulary: Vocabulary
) -> None:
    place = evidence.root / "evidence/vocabulary.yaml"
    place.write_text(place.read_text().replace("\n  moe:\n", "\n  mixture:\n"))
    wheel.add("moe_perf")
    with pytest.raises(InvalidInputError, match="needs the operation 'moe'") as caught:
        run(evidence, wheel)
    assert "perfdb init" in (caught.value.remedy or "")
    assert "moe" in vocabulary.operations


def test_no_database(evidence: Evidence, wheel: Wheel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no table"):
        run(evidence, wheel)
    text = tmp_path / "notes.txt"
    text.write_text("no wheel")
    with pytest.raises(UsageError, match="cannot be read"):
        import_database(DatabaseImportRequest(repository=evidence.root, database=text))


def test_without_pyarrow(evidence: Evidence, wheel: Wheel, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel.add("gemm_perf")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="tables"):
        run(evidence, wheel)


def test_a_full_disk_leaves_nothing(
    evidence: Evidence, wheel: Wheel, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel.add("gemm_perf")
    wheel.add("moe_perf")
    from perfdb_git.storage import append

    written = itertools.count()

    def fail_late(_: int) -> None:
        if next(written) == 4:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(append.os, "fsync", fail_late)
    with pytest.raises(RepositoryUnavailableError, match="No space left"):
        run(evidence, wheel)
    assert [p for p in evidence.root.rglob("*") if p.is_file()] == [
        evidence.root / "evidence/vocabulary.yaml"
    ]


def test_rows_written_by_column_are_canonical() -> None:
    import numpy as np

    numbers = random.Random(7)
    odd = [0.0, 1.0, 1e-5, 1e16, 1e22, 5e-324, 2.0**53, 0.1, 1 / 3, 123456789.0]
    floats = odd + [numbers.lognormvariate(0, 20) for _ in range(2000)]
    integers = [numbers.randrange(2**53) for _ in floats]
    header = {"schema": "perfdb/record-set/v1", "columns": [{"name": "a"}]}
    rows = [
        [a, b, None if index == 3 else c]
        for index, (a, b, c) in enumerate(zip(integers, floats, reversed(floats), strict=True))
    ]
    unknown = np.array(floats[::-1])
    unknown[3] = np.nan
    columns = [np.array(integers, dtype=np.int64), np.array(floats), unknown]
    texts = row_texts([cell_texts(column) for column in columns])
    assert canonical_record_set_of_texts(header, texts) == canonical_record_set(header, rows)
