"""Splits at work: which side a record falls on, and whether anything leaked to the other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from perfdb_git.calibration.selection import (
    SelectedRecords,
    cell_text,
    require_facts,
    select_records,
)
from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.digests import sha256_hex
from perfdb_git.model.records import ROW_NUMBER
from perfdb_git.model.splits import (
    BucketRange,
    BucketRule,
    CutRule,
    KeyText,
    Membership,
    Split,
    SplitRecipe,
)
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.units import METRIC_UNITS
from perfdb_git.storage.snapshot import EvidenceSnapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    BoolArray: TypeAlias = NDArray[np.bool_]
    SideArray: TypeAlias = NDArray[np.int8]

SPLIT_SCHEMA = "perfdb/split/v1"

UNUSED, TRAIN, HELD_OUT = 0, 1, 2
"""Sides of a split; unused records neither train nor judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeFault:
    """What is wrong with a recipe, at a JSON pointer in it."""

    code: str
    pointer: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """One point that stands on both sides, with a record of each."""

    point: str
    train: str
    held_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Records with their keys and sides, all of one length."""

    records: SelectedRecords
    keys: tuple[str, ...]
    sides: SideArray

    @property
    def train(self) -> BoolArray:
        """Mask of the records to fit on, shape ``(n_records,)``."""
        mask: BoolArray = self.sides == TRAIN
        return mask

    @property
    def held_out(self) -> BoolArray:
        """Mask of the records that only judge, shape ``(n_records,)``."""
        mask: BoolArray = self.sides == HELD_OUT
        return mask

    def held_out_keys(self) -> list[str]:
        """Return the different keys of the held-out records, sorted."""
        held_out = zip(self.keys, self.held_out.tolist(), strict=True)
        return sorted({key for key, out in held_out if out})

    def membership(self) -> Membership:
        """Return what a split document keeps of the assignment."""
        held_out = self.held_out_keys()
        train, judging = int(self.train.sum()), int(self.held_out.sum())
        return Membership(
            record_sets=self.records.record_sets,
            retracted=tuple(sorted(self.records.retracted)),
            records=len(self.records),
            train_records=train,
            held_out_records=judging,
            unused_records=len(self.records) - train - judging,
            held_out_keys=len(held_out),
            held_out_digest=lines_digest(held_out),
        )


def lines_digest(lines: Iterable[str]) -> str:
    """Return the SHA-256 of texts, sorted and joined by newlines."""
    return sha256_hex("\n".join(sorted(lines)).encode("utf-8"))


def recipe_faults(recipe: SplitRecipe) -> Iterator[RecipeFault]:
    """Yield what is wrong with a recipe before it meets any record."""
    texts = [("/key", recipe.key)]
    if recipe.bucket is not None:
        texts += [(f"/bucket/parts/{n}", part) for n, part in enumerate(recipe.bucket.parts)]
    for where, text in texts:
        for number, name in enumerate(text.columns):
            if name == ROW_NUMBER or name in METRIC_UNITS:
                yield RecipeFault(
                    code="split-by-repeat",
                    pointer=f"{where}/columns/{number}",
                    message=f"{name!r} tells repeats of one point apart, so that they could fall "
                    "on different sides",
                )
    if recipe.bucket is not None:
        yield from _range_faults(recipe.bucket)


def _range_faults(rule: BucketRule) -> Iterator[RecipeFault]:
    limit = 1 if rule.modulus is None else rule.modulus
    named = [("/bucket/held_out", rule.held_out)]
    named += [] if rule.train is None else [("/bucket/train", rule.train)]
    for where, item in named:
        if not item.at_least < item.below <= limit:
            yield RecipeFault(
                code="bad-bucket-range",
                pointer=where,
                message=f"buckets {item.at_least} to {item.below} are not part of 0 to {limit}",
            )
    if rule.train is not None and _overlap(rule.held_out, rule.train):
        yield RecipeFault(
            code="bad-bucket-range",
            pointer="/bucket/train",
            message="training and held-out buckets overlap",
        )


def _overlap(one: BucketRange, other: BucketRange) -> bool:
    return one.at_least < other.below and other.at_least < one.below


def assign(recipe: SplitRecipe, records: SelectedRecords) -> Assignment:
    """Put each record on its side.

    Parameters
    ----------
    recipe : SplitRecipe
        The rule; its own selection is not looked at.
    records : SelectedRecords
        What that selection gave.

    Raises
    ------
    InvalidInputError
        The first of `recipe_faults`; 'unknown-key' where a key column is unknown in a record;
        'key-on-two-sides' where the rule tears records of one key apart.
    """
    name = f"split {recipe.name}"
    for fault in recipe_faults(recipe):
        raise InvalidInputError(
            fault.message, code=fault.code, document=name, pointer=fault.pointer
        )
    keys = _texts(recipe.key, records, name)
    if recipe.bucket is not None:
        sides = _bucket_sides(recipe.bucket, records, keys, name)
    else:
        assert recipe.cut is not None
        sides = _cut_sides(recipe.cut, records, name)
    _require_whole_keys(keys, sides, name)
    if recipe.deduplicate == "full-row":
        sides = np.where(_is_repeated_row(records), np.int8(UNUSED), sides)
    return Assignment(records=records, keys=tuple(keys), sides=sides)


def _texts(text: KeyText, records: SelectedRecords, document: str) -> list[str]:
    """Return the text of each record."""
    require_facts(text.columns)
    columns = []
    for name in text.columns:
        prefix = f"{name}=" if text.form == "named" else ""
        memo: dict[object, str] = {}
        parts = []
        for cell in records.upstream(name):
            # The type is part of the key: true is no 1.
            where = (type(cell), cell)
            if where not in memo:
                memo[where] = prefix + cell_text(cell, document=document, column=name)
            parts.append(memo[where])
        columns.append(parts)
    join = text.separator.join
    return [join((*text.literals, *cells)) for cells in zip(*columns, strict=True)]


def _bucket_sides(
    rule: BucketRule, records: SelectedRecords, keys: Sequence[str], document: str
) -> SideArray:
    parts: list[Sequence[str]] = [_texts(part, records, document) for part in rule.parts]
    parts = parts or [keys]
    memo: dict[str, int] = {}
    sides = np.empty(len(records), dtype=np.int8)
    for place, texts in enumerate(zip(*parts, strict=True)):
        text = rule.separator.join((rule.seed, *texts))
        side = memo.get(text)
        if side is None:
            side = memo[text] = _bucket_side(rule, text)
        sides[place] = side
    return sides


def _bucket_side(rule: BucketRule, text: str) -> int:
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    number = int(digest[: rule.hex_digits], 16)
    # Python divides integers of any size with one rounding.
    bucket = number / 16**rule.hex_digits if rule.modulus is None else number % rule.modulus
    if rule.held_out.at_least <= bucket < rule.held_out.below:
        return HELD_OUT
    if rule.train is None or rule.train.at_least <= bucket < rule.train.below:
        return TRAIN
    return UNUSED


def _cut_sides(rule: CutRule, records: SelectedRecords, document: str) -> SideArray:
    values = records.numbers(rule.dimension)
    if bool(np.isnan(values).any()):
        raise InvalidInputError(
            f"dimension {rule.dimension!r} is unknown in some selected record",
            code="unknown-key",
            document=document,
            pointer="/cut/dimension",
            remedy="narrow the selection, or cut at another dimension",
        )
    is_out = values > rule.at if rule.held_out == "above" else values < rule.at
    return np.where(is_out, np.int8(HELD_OUT), np.int8(TRAIN))


def _require_whole_keys(keys: Sequence[str], sides: SideArray, document: str) -> None:
    first: dict[str, int] = {}
    for key, side in zip(keys, sides.tolist(), strict=True):
        if first.setdefault(key, side) != side:
            raise InvalidInputError(
                f"records of the key {key!r} fall on different sides",
                code="key-on-two-sides",
                document=document,
                pointer="/key",
                remedy="let the key name all that the rule looks at",
            )


def _is_repeated_row(records: SelectedRecords) -> BoolArray:
    repeated = []
    for block in records.blocks:
        seen: set[str] = set()
        for text in block.full_rows():
            repeated.append(text in seen)
            seen.add(text)
    return np.array(repeated, dtype=np.bool_)


def build_split(snapshot: EvidenceSnapshot, recipe: SplitRecipe) -> tuple[Split, Assignment]:
    """Apply a recipe to the records of a snapshot.

    Raises
    ------
    InvalidInputError, NoEvidenceError, UsageError
        As `assign` and `select_records`.
    """
    assignment = assign(recipe, select_records(snapshot, recipe.records))
    split = Split(schema=SPLIT_SCHEMA, recipe=recipe, membership=assignment.membership())
    return split, assignment


def replay_split(snapshot: EvidenceSnapshot, split: Split, *, document: str) -> Assignment:
    """Work a split out again from the record sets that it pins.

    Parameters
    ----------
    snapshot : EvidenceSnapshot
        Where the records stand; later records and retractions have no effect.
    split : Split
        The document's content.
    document : str
        Its path, for messages.

    Raises
    ------
    InvalidInputError
        'split-not-reproduced' where counts or digest differ from the stated ones.
    NoEvidenceError
        'missing-record-set'.
    """
    stated = split.membership
    records = select_records(
        snapshot,
        split.recipe.records,
        record_sets=stated.record_sets,
        left_out=stated.retracted,
    )
    assignment = assign(split.recipe, SelectedRecords(records.blocks, retracted=stated.retracted))
    found = assignment.membership()
    if found != stated:
        raise InvalidInputError(
            f"the rule holds out {found.held_out_keys} keys with digest {found.held_out_digest}, "
            f"stated are {stated.held_out_keys} with {stated.held_out_digest}",
            code="split-not-reproduced",
            document=document,
            pointer="/membership",
            remedy="write the split with perfdb instead of by hand",
        )
    return assignment


def find_leaks(assignment: Assignment, vocabulary: Vocabulary) -> tuple[Leak, ...]:
    """Return the points that have records on both sides, sorted.

    A point is all that a query can ask: records that differ in nothing but their repeat, session
    or source are the same point, and a model that saw one of them has seen the held-out ones.
    """
    unmatched = [name for name, item in vocabulary.dimensions.items() if not item.matched]
    points = assignment.records.points(unmatched)
    ids = assignment.records.ids()
    train: dict[object, str] = {}
    for point, name, side in zip(points, ids, assignment.sides.tolist(), strict=True):
        if side == TRAIN:
            train.setdefault(point, name)
    leaks: dict[object, Leak] = {}
    for point, name, side in zip(points, ids, assignment.sides.tolist(), strict=True):
        if side == HELD_OUT and point in train and point not in leaks:
            text = " ".join(f"{key}={value}" for key, value in zip(*point, strict=True))
            leaks[point] = Leak(point=text, train=train[point], held_out=name)
    return tuple(sorted(leaks.values(), key=lambda leak: leak.point))
