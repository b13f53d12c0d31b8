"""A timing profile with one calibrated component, as a new file beside the one it came from."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

from perfdb_git.calibration.scale_offset_fits import ScaleOffsetResult
from perfdb_git.calibration.scale_offset_samples import ScaleOffsetRequest
from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.formats.canonical import canonical_document
from perfdb_git.model.timing_profile import Component, TimingProfile
from perfdb_git.simulation.documents import ReadDocument, read_timing_profile
from perfdb_git.storage import layout
from perfdb_git.storage.timing_documents import TimingDocuments

_NS_PER_S = 10**9


def calibrated_profile(
    documents: TimingDocuments,
    profile: ReadDocument[TimingProfile],
    request: ScaleOffsetRequest,
    result: ScaleOffsetResult,
    *,
    calibration: str,
    name: str,
    version: str,
) -> tuple[str, bytes]:
    """Return path and bytes of the new profile; nothing is written.

    All but the one component is as it was, notes included.

    Parameters
    ----------
    documents : TimingDocuments
        Where the old profile stands.
    profile : ReadDocument[TimingProfile]
        The old profile.
    request : ScaleOffsetRequest
        What was fitted.
    result : ScaleOffsetResult
        What was found.
    calibration : str
        SHA-256 of the revision.
    name, version : str
        Of the new profile.

    Raises
    ------
    UsageError
        'profile-exists'.
    InvalidInputError
        'long-number' where a number of the old profile has more digits than would be kept.
    """
    if layout.slug(name) != name or name in documents.timing_profiles():
        raise UsageError(
            f"{name!r} is taken by another profile, or is no name of a file",
            code="profile-exists",
            remedy="give the calibrated profile a name of its own, in lower case",
        )
    component = _calibrated(profile.value.components[request.component], request, result)
    component = replace(component, calibration=calibration)
    wanted = replace(
        profile.value,
        name=name,
        version=version,
        components={**profile.value.components, request.component: component},
    )
    stated = documents.stated(profile.document)
    stated |= {"schema": wanted.schema, "name": name, "version": version}
    stated["components"][request.component] |= _fields(component)
    content = canonical_document(stated)
    path = f"{layout.PROFILES}/{name}{layout.JSON_SUFFIX}"
    if read_timing_profile(content, document=path).value != wanted:
        raise _long_number(profile.document)
    return path, content


def _long_number(document: str) -> InvalidInputError:
    return InvalidInputError(
        "a number of the profile has more digits than the new file would keep",
        code="long-number",
        document=document,
        remedy="write it with at most 17 digits",
    )


def _calibrated(
    component: Component, request: ScaleOffsetRequest, result: ScaleOffsetResult
) -> Component:
    errors = result.calibration.held_out_report.overall
    held_out = "no held-out size was answered"
    if errors is not None:
        held_out = f"held-out MAPE {errors.mape_pct:.3g} % over {errors.n} records of other sizes"
    domain = result.calibration.slices[0].domain[request.dimension]
    uncertainty = math.expm1(result.width) * 100
    notes = (
        f"calibration_scale, calibration_offset_ns: soft-L1 fit of log(predicted / measured) to "
        f"{result.sizes} medians of {request.operation} on {request.device}, {request.dimension} "
        f"{domain.minimum:g} to {domain.maximum:g}; {held_out}.",
        f"uncertainty_pct: half of the {result.level:.0%} prediction interval, from sizes that "
        "were left out of the fit.",
    )
    return replace(
        component,
        evidence="calibrated",
        target=request.device,
        calibration_scale=_decimal(result.line.alpha),
        calibration_offset_ns=_decimal(result.line.beta * _NS_PER_S),
        uncertainty_pct=_decimal(float(f"{uncertainty:.3g}")),
        notes=(*component.note_lines(), *notes),
    )


def _decimal(value: float) -> Decimal:
    return Decimal(repr(value))


def _fields(component: Component) -> dict[str, Any]:
    """Return the fields that a calibration sets, as JSON."""
    assert component.uncertainty_pct is not None
    return {
        "evidence": component.evidence,
        "target": component.target,
        "calibration": component.calibration,
        "calibration_scale": float(component.calibration_scale),
        "calibration_offset_ns": float(component.calibration_offset_ns),
        "uncertainty_pct": float(component.uncertainty_pct),
        "notes": list(component.note_lines()),
    }
