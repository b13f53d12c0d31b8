"""Published splits as recipes over this repository's evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfdb_git.model.splits import (
    BucketRange,
    BucketRule,
    CutRule,
    KeyText,
    RecordSelection,
    SplitRecipe,
)

PUBLISHED: dict[str, Any] = json.loads(
    Path(__file__).with_name("published_splits.json").read_text(encoding="utf-8")
)
SERIES: dict[str, dict[str, Any]] = {item["name"]: item for item in PUBLISHED["vidur"]["series"]}
CASES: dict[str, dict[str, Any]] = {
    f"{item['table']}-{item['rule']}": item for item in PUBLISHED["aiconfigurator"]["cases"]
}
SEED = PUBLISHED["aiconfigurator"]["seed"]
HELD_OUT = BucketRange(at_least=0, below=200)


def vidur_recipe(series: Mapping[str, Any]) -> SplitRecipe:
    """A series of Vidur's.

    Upstream dropped full-row duplicates before it split, and its rows of networks carry an index
    that makes all of them different; those of the MLP table hold all operations, so that two rows
    that agree in one of them are kept. Only the attention table had rows to drop.
    """
    where = {name: (value,) for name, value in series["where"].items()}
    is_attention = series["operation"].startswith("attention")
    return SplitRecipe(
        name=series["name"].replace("/", "-"),
        description="A fifth of the sizes of one of Vidur's series.",
        records=RecordSelection(
            device=series["device"],
            operations=(series["operation"],),
            where={**where, "@git_blob": (series["blob"],)},
        ),
        deduplicate="full-row" if is_attention else "none",
        key=KeyText(columns=tuple(series["key_columns"]), form="named", separator=","),
        bucket=BucketRule(
            seed="20240517",
            parts=(
                KeyText(columns=("@git_blob",)),
                KeyText(columns=tuple(series["key_columns"]), form="named", separator=","),
            ),
            hex_digits=16,
            held_out=BucketRange(at_least=0, below=0.2),
        ),
    )


def h200_recipe(case: Mapping[str, Any], *, train: BucketRange | None = None) -> SplitRecipe:
    """A case of aiconfigurator's H200 tables."""
    bucket: BucketRule | None = None
    cut: CutRule | None = None
    if case["rule"] == "mtail":
        cut = CutRule(dimension="m", at=2049, held_out="above")
    else:
        site = KeyText(literals=("gemm-site",), columns=("gemm_dtype", "n", "k"))
        bucket = BucketRule(
            seed=SEED,
            parts=(site,) if case["rule"] == "site20" else (),
            hex_digits=8,
            modulus=1000,
            held_out=HELD_OUT,
            train=train,
        )
    return SplitRecipe(
        name=f"h200-{case['table']}-{case['rule']}".replace("_", "-"),
        description=f"The published split {case['rule']} of the table {case['table']}.",
        records=RecordSelection(
            device="h200_141g",
            operations=tuple(case["operations"]),
            terms={name: tuple(values) for name, values in case["terms"].items()},
        ),
        key=KeyText(literals=(case["table"],), columns=tuple(case["keys"])),
        bucket=bucket,
        cut=cut,
    )
