"""Ways to break the splits, calibrations and validations of a clean repository."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from perfdb_git.calibration.documents import document_file
from perfdb_git.formats.canonical import canonical_document
from perfdb_git.formats.codec import encode
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.model.calibration import DomainRange, EncodedArray, Parameters, TrainingRecords
from perfdb_git.model.splits import (
    BucketRange,
    BucketRule,
    CutRule,
    KeyText,
    Membership,
    RecordSelection,
    Split,
    SplitRecipe,
)
from perfdb_git.model.validation import RecordPair, ValidationTarget
from tests.calibration.revisions import SHA, calibration, slice_of, validation

Expected = list[tuple[str, str, str | None, int | None]]

CALIBRATION_BREAKS: dict[str, Callable[[Any], Expected]] = {}


def breaks(function: Callable[[Any], Expected]) -> Callable[[Any], Expected]:
    CALIBRATION_BREAKS[function.__name__] = function
    return function


def recipe(**changes: Any) -> SplitRecipe:
    standard: dict[str, Any] = {
        "name": "half",
        "description": "A half.",
        "records": RecordSelection(device="a100_80g", operations=("gemm",)),
        "key": KeyText(columns=("m", "n")),
        "bucket": BucketRule(
            seed="s", hex_digits=8, modulus=10, held_out=BucketRange(at_least=0, below=5)
        ),
    }
    return SplitRecipe(**(standard | changes))


def split(e: Any, *, membership: dict[str, Any] | None = None, **changes: Any) -> Split:
    counts: dict[str, Any] = {
        "record_sets": (e.sha(e.path),),
        "records": 3,
        "train_records": 1,
        "held_out_records": 1,
        "unused_records": 1,
        "held_out_keys": 1,
        "held_out_digest": SHA,
    }
    return Split(
        schema="perfdb/split/v1",
        recipe=recipe(**changes),
        membership=Membership(**(counts | (membership or {}))),
    )


def add(e: Any, document: Any) -> str:
    """Add a document under its own digest and return its path."""
    path, _, content = document_file(document)
    e.files[path] = content
    return path


def revision(e: Any, **changes: Any) -> Any:
    """A clean calibration of the clean repository, whose split is added."""
    digest = e.sha(add(e, split(e)))
    training = TrainingRecords(records=2, record_sets=(e.sha(e.path),), digest=SHA)
    clean = calibration(slices=(slice_of(split=digest, training=training),))
    slices = changes.pop("slices", lambda item: (item,))(clean.slices[0])
    return replace(clean, slices=slices, **changes)


def judged(e: Any, **changes: Any) -> Any:
    """A clean validation of the clean repository."""
    pair = RecordPair(simulated=f"{e.sha(e.path)}#0", measured=f"{e.sha(e.other)}#0")
    return replace(validation(pairs=(pair,)), **changes)


def spec(e: Any, **changes: Any) -> str:
    value = {
        "schema": "perfdb/calibration-spec/v1",
        "name": "gemm",
        "description": "GEMM.",
        "family": "operation-size-efficiency",
        "response": "latency",
        "operation": "gemm",
        "device": "a100_80g",
        "inputs": ["m"],
        "parts": [{"split": encode(recipe()), "forms": ["affine"], "slice_by": ["dtype"]}],
        **changes,
    }
    path = "evidence/calibrations/specs/gemm.yaml"
    e.files[path] = canonical_document(value)  # JSON is YAML too
    return path


def one(code: str, document: str, pointer: str | None = None) -> Expected:
    return [(code, document, pointer, None)]


def clean_documents(e: Any) -> None:
    """Add one clean document of each kind."""
    add(e, revision(e))
    add(e, judged(e))
    spec(e)


# --- places and digests ---


@breaks
def split_under_another_digest(e: Any) -> Expected:
    path = "evidence/splits/half-000000000000.json"
    e.files[path] = e.files.pop(add(e, split(e)))
    return one("wrong-digest", path)


@breaks
def calibration_under_another_digest(e: Any) -> Expected:
    path = f"evidence/calibrations/operation-size-efficiency/{SHA}.json"
    e.files[path] = e.files.pop(add(e, revision(e)))
    return one("wrong-digest", path)


@breaks
def calibration_in_another_family(e: Any) -> Expected:
    content = e.files.pop(add(e, revision(e)))
    path = f"evidence/calibrations/contention/{sha256_hex(content)}.json"
    e.files[path] = content
    return one("wrong-folder", path, "/family")


@breaks
def calibration_in_another_layout(e: Any) -> Expected:
    content = e.files.pop(add(e, revision(e))).replace(b'"seed": 0', b'"seed":  0')
    path = f"evidence/calibrations/operation-size-efficiency/{sha256_hex(content)}.json"
    e.files[path] = content
    return one("not-canonical", path)


@breaks
def spec_among_revisions(e: Any) -> Expected:
    path = "evidence/calibrations/gemm.yaml"
    e.files[path] = e.files.pop(spec(e))
    return one("unknown-file", path)


# --- splits ---


@breaks
def split_by_row(e: Any) -> Expected:
    path = add(e, split(e, key=KeyText(columns=("m", "row"))))
    return one("split-by-repeat", path, "/recipe/key/columns/1")


@breaks
def buckets_that_overlap(e: Any) -> Expected:
    rule = replace(recipe().bucket, train=BucketRange(at_least=4, below=10))
    return one("bad-bucket-range", add(e, split(e, bucket=rule)), "/recipe/bucket/train")


@breaks
def split_that_loses_records(e: Any) -> Expected:
    return one("split-counts", add(e, split(e, membership={"records": 4})), "/membership")


@breaks
def split_of_an_unknown_set(e: Any) -> Expected:
    path = add(e, split(e, membership={"record_sets": (SHA,)}))
    return one("unknown-record-set", path, "/membership/record_sets/0")


@breaks
def split_of_a_set_retracted_since(e: Any) -> Expected:
    """The clean repository retracts a record of the other set."""
    retracted = f"{e.sha(e.other)}#0"
    sets = tuple(sorted([e.sha(e.path), e.sha(e.other)]))
    add(e, split(e, membership={"record_sets": sets, "retracted": (retracted,)}))
    path = add(e, split(e, name="blind", membership={"record_sets": sets}))
    return one("retracted-training", path, "/membership")


@breaks
def split_of_unknown_names(e: Any) -> Expected:
    records = RecordSelection(
        device="a100", operations=("gemv",), terms={"dtype": ("fp16",), "depth": (1,)}
    )
    cut = CutRule(dimension="mm", at=1, held_out="above")
    path = add(e, split(e, records=records, bucket=None, cut=cut))
    return [
        ("unknown-dimension", path, "/recipe/cut/dimension", None),
        ("unknown-dimension", path, "/recipe/records/terms/depth/0", None),
        ("unknown-operation", path, "/recipe/records/operations/0", None),
        ("unknown-term", path, "/recipe/records/device", None),
        ("unknown-term", path, "/recipe/records/terms/dtype/0", None),
    ]


# --- calibrations ---


@breaks
def calibration_that_reads_case_ids(e: Any) -> Expected:
    ranges = dict.fromkeys(("m", "case_id"), DomainRange(minimum=1, maximum=2))
    path = add(
        e,
        revision(e, inputs=("m", "case_id"), slices=lambda item: (replace(item, domain=ranges),)),
    )
    return one("forbidden-input", path, "/inputs/1")


@breaks
def calibration_by_model_name(e: Any) -> Expected:
    path = add(e, revision(e, slices=lambda item: (replace(item, terms={"model": "phi-2"}),)))
    return one("forbidden-input", path, "/slices/0/terms/model")


@breaks
def calibration_of_an_alias(e: Any) -> Expected:
    path = add(
        e,
        revision(
            e,
            device="a100",
            operation="gemv",
            terms={"form_factor": None, "topology": "a100_dgx"},
            slices=lambda item: (replace(item, terms={"dtype": "fp16"}),),
        ),
    )
    return [
        ("unknown-operation", path, "/operation", None),
        ("unknown-term", path, "/device", None),
        ("unknown-term", path, "/slices/0/terms/dtype", None),
        ("unknown-term", path, "/terms/topology", None),
    ]


@breaks
def calibration_without_its_split(e: Any) -> Expected:
    path = add(e, revision(e, slices=lambda item: (replace(item, split=SHA),)))
    return one("unknown-split", path, "/slices/0/split")


@breaks
def calibration_of_an_unknown_set(e: Any) -> Expected:
    training = TrainingRecords(records=2, record_sets=(SHA,), digest=SHA)
    path = add(e, revision(e, slices=lambda item: (replace(item, training=training),)))
    return one("unknown-record-set", path, "/slices/0/training/record_sets/0")


@breaks
def calibration_with_a_cut_array(e: Any) -> Expected:
    array = EncodedArray(dtype="float64", shape=(2,), data="AAAAAAAA8D8=")
    parameters = Parameters(arrays={"size": array})
    inside = replace(slice_of().inside, parameters=parameters)
    path = add(e, revision(e, slices=lambda item: (replace(item, inside=inside, beyond=inside),)))
    return [
        ("bad-array", path, f"/slices/0/{key}/parameters/arrays/size", None)
        for key in ("beyond", "inside")
    ]


@breaks
def calibration_without_a_range(e: Any) -> Expected:
    ranges = dict.fromkeys(("m", "n"), DomainRange(minimum=2, maximum=2))
    backwards = DomainRange(minimum=2, maximum=1)
    path = add(
        e,
        revision(
            e,
            slices=lambda item: (
                replace(item, domain=ranges),
                replace(item, terms={"dtype": "float32"}, domain={**ranges, "k": backwards}),
            ),
        ),
    )
    return [("bad-domain", path, f"/slices/{number}/domain", None) for number in (0, 1)]


@breaks
def report_that_does_not_add_up(e: Any) -> Expected:
    clean = revision(e)
    report = replace(clean.held_out_report, held_out=7)
    return one("report-counts", add(e, replace(clean, held_out_report=report)), "/held_out_report")


@breaks
def report_in_parts_that_do_not_add_up(e: Any) -> Expected:
    clean = revision(e)
    report = clean.held_out_report
    assert report.overall is not None
    report = replace(report, extrapolated=replace(report.overall, n=1))
    return one("report-counts", add(e, replace(clean, held_out_report=report)), "/held_out_report")


@breaks
def spec_of_names_and_aliases(e: Any) -> Expected:
    part = {
        "split": encode(recipe(key=KeyText(columns=("row",)))),
        "forms": ["affine"],
        "slice_by": ["task"],
        "terms": {"dtype": ["fp16"]},
    }
    path = spec(e, inputs=["m", "network"], parts=[part], device="a100", operation="gemv")
    return [
        ("forbidden-input", path, "/inputs/1", None),
        ("forbidden-input", path, "/parts/0/slice_by/0", None),
        ("split-by-repeat", path, "/parts/0/split/key/columns/0", None),
        ("unknown-operation", path, "/operation", None),
        ("unknown-term", path, "/device", None),
        ("unknown-term", path, "/parts/0/terms/dtype/0", None),
    ]


# --- validations ---


@breaks
def validation_of_unknown_records(e: Any) -> Expected:
    sha = e.sha(e.path)
    pairs = (
        RecordPair(simulated=f"{SHA}#0", measured=f"{sha}#3"),
        RecordPair(simulated=f"{sha}#2", measured=f"{sha}#99999999999999999999"),
    )
    path = add(e, judged(e, pairs=pairs))
    return [
        ("unknown-record-set", path, "/pairs/0/simulated", None),
        ("unknown-row", path, "/pairs/0/measured", None),
        ("unknown-row", path, "/pairs/1/measured", None),
    ]


@breaks
def validation_for_an_alias(e: Any) -> Expected:
    target = ValidationTarget(device="a100", component=None, capability_revision=None)
    report = replace(judged(e).held_out_report, refused=0)
    path = add(e, judged(e, target=target, held_out_report=report))
    return [
        ("report-counts", path, "/held_out_report", None),
        ("unknown-term", path, "/target/device", None),
    ]
