"""Which kind of document stands where in an evidence repository."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfdb_git.storage import layout

ROOTS = (layout.EVIDENCE, layout.PIPELINES, layout.PROFILES, layout.SCHEMAS)
"""The folders of a repository that belong to the evidence; nothing else is looked at."""

SCHEMA_KIND = "schema"

_DOCUMENT = r"[^/]+\.(?:json|yaml)"
_JSON = r"[^/]+\.json"
_REMARK = re.compile(r"(?:[^/]+/)*(?:[^/]+\.md|\.gitkeep)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where documents of one kind stand.

    ``canonical`` documents are written by the tool in one layout; ``by_folder`` ones may leave
    their schema out.
    """

    folder: str
    files: str
    kind: str | None
    canonical: bool = False
    by_folder: bool = False


# The innermost folder first: the first one that a path begins with decides. Of several places in
# one folder the first one whose names fit does.
PLACES = (
    Place(folder=layout.RECORDS, files=f"[^/]+/[^/]+/{_JSON}", kind="record-set", canonical=True),
    Place(folder=layout.MANIFESTS, files=_JSON, kind="manifest", canonical=True),
    Place(folder=layout.RETRACTIONS, files=_JSON, kind="retraction", canonical=True),
    Place(folder=layout.SPLITS, files=rf"(?:[^/]+/)*{_JSON}", kind="split", canonical=True),
    Place(folder=layout.CALIBRATION_SPECS, files=r"[^/]+\.yaml", kind="calibration-spec"),
    Place(folder=layout.CALIBRATIONS, files=f"[^/]+/{_JSON}", kind="calibration", canonical=True),
    Place(folder=layout.VALIDATIONS, files=_JSON, kind="validation", canonical=True),
    # Gates stand among the policies, and no policy may be called so.
    Place(folder=layout.POLICIES, files=r"gates\.yaml", kind="gates"),
    Place(folder=layout.POLICIES, files=r"(?!gates\.)[^/]+\.yaml", kind="policy"),
    Place(folder=layout.EVIDENCE, files=r"vocabulary\.yaml", kind="vocabulary"),
    Place(folder=layout.SYSTEM_PROFILES, files=_DOCUMENT, kind="system-profile"),
    Place(folder=layout.PROFILES, files=_DOCUMENT, kind="timing-profile", by_folder=True),
    Place(
        folder=layout.PLANS,
        files=r"[^/]+" + re.escape(layout.LOCK_SUFFIX),
        kind="plan-lock",
        canonical=True,
    ),
    Place(folder=layout.PLANS, files=_DOCUMENT, kind="plan"),
    Place(folder=layout.PIPELINES, files=_DOCUMENT, kind="pipeline", by_folder=True),
    Place(
        folder=layout.SCHEMAS,
        files=r"(?:extensions/)?[a-z][a-z0-9-]*\.v[1-9][0-9]{0,5}\.schema\.json",
        kind=SCHEMA_KIND,
    ),
)

FALLBACK_PATHS = (
    layout.VOCABULARY,
    *dict.fromkeys(place.folder for place in PLACES if place.folder not in ROOTS),
)
"""What is looked at one by one where the folder around it cannot be walked whole."""


def place_of(path: str) -> Place | None:
    """Return the place that a document belongs to, or None for a remark or an unknown file."""
    if _REMARK.fullmatch(path):
        return None
    for place in _around(path):
        if re.fullmatch(place.files, path[len(place.folder) + 1 :]):
            return place
    return None


def is_remark(path: str) -> bool:
    """Tell whether a file is for people only: a Markdown text, or a keeper of an empty folder."""
    return _REMARK.fullmatch(path) is not None


def _around(path: str) -> list[Place]:
    """Return the places of the innermost folder that a path begins with."""
    places = [place for place in PLACES if path.startswith(f"{place.folder}/")]
    return [place for place in places if place.folder == places[0].folder]
