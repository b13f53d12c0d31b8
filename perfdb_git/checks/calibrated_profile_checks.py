"""Calibrated timing profiles: each calibrated component has the revision that says how well."""

from __future__ import annotations

import math
from collections.abc import Iterator

from perfdb_git.checks.checked_snapshot import CheckedDocument, CheckedSnapshot
from perfdb_git.checks.policy_checks import UNKNOWN_CALIBRATION
from perfdb_git.checks.rules import Check, Rule
from perfdb_git.checks.terms import pointer
from perfdb_git.errors import InvalidInputError
from perfdb_git.model.calibration import Calibration
from perfdb_git.model.findings import Finding
from perfdb_git.model.timing_profile import Component, TimingProfile
from perfdb_git.simulation.documents import TIMING_PROFILE_KIND, read_timing_profile
from perfdb_git.storage import layout

NO_REVISION = Rule(
    code="calibrated-without-revision",
    documentation="A calibrated component names the revision that it was calibrated by.",
    remedy="fit it with 'perfdb calibrate scale-offset', or state it as analytic",
)
NO_REPORT = Rule(
    code="calibrated-without-report",
    documentation="The revision behind a calibrated component was judged by held-out records.",
    remedy="measure more sizes, and fit it again",
)
NO_TARGET = Rule(
    code="calibrated-without-target",
    documentation="A calibrated component names the device that it was calibrated for.",
    remedy="fit it with 'perfdb calibrate scale-offset', which states the target",
)
OTHER_CALIBRATION = Rule(
    code="calibration-of-another",
    documentation="A calibrated component has target, scale and offset of its revision.",
    remedy="fit it with 'perfdb calibrate scale-offset'; its numbers are not edited",
)

_NS_PER_S = 10**9
_SAME = 1e-12
"""Largest relative difference of an offset that went from seconds to nanoseconds."""


def judge_profiles(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Yield calibrated components whose calibration is absent or another one's."""
    for document in snapshot.documents(TIMING_PROFILE_KIND):
        yield from _without_target(document)
        profile = _profile(snapshot, document)
        for name, component in () if profile is None else profile.components.items():
            if component.evidence == "calibrated":
                yield from _component(snapshot, document, name, component)


def _without_target(document: CheckedDocument) -> Iterator[Finding]:
    """Yield calibrated components without a target, which no valid profile has."""
    value = document.value
    components = value.get("components") if isinstance(value, dict) else None
    for name, item in components.items() if isinstance(components, dict) else ():
        calibrated = isinstance(item, dict) and item.get("evidence") == "calibrated"
        if calibrated and item.get("target") is None:
            text = f"component {name} is calibrated, for nothing that is named"
            yield NO_TARGET.broken(document.path, text, pointer=pointer("components", name))


def _profile(snapshot: CheckedSnapshot, document: CheckedDocument) -> TimingProfile | None:
    """Return a sound profile from its bytes, decimals and all."""
    if not document.is_valid:
        return None
    assert document.content is not None
    try:
        read = read_timing_profile(
            document.content, document=document.path, schemas=snapshot.schemas
        )
    except InvalidInputError:
        # The check of timing profiles says what is wrong.
        return None
    return read.value


def _component(
    snapshot: CheckedSnapshot, document: CheckedDocument, name: str, component: Component
) -> Iterator[Finding]:
    where = pointer("components", name)
    if component.calibration is None:
        yield NO_REVISION.broken(
            document.path,
            f"component {name} is calibrated, by nothing that is named",
            pointer=where,
        )
        return
    there = f"{where}/calibration"
    found = _revision(snapshot, component.calibration)
    if found is None:
        if snapshot.is_walked(layout.CALIBRATIONS):
            text = f"there is no calibration {component.calibration}"
            yield UNKNOWN_CALIBRATION.broken(document.path, text, pointer=there)
        return
    calibration = found.as_model(Calibration)
    if calibration is None:
        return
    if calibration.held_out_report.overall is None:
        text = f"no held-out record judges revision {component.calibration[:12]}"
        yield NO_REPORT.broken(document.path, text, pointer=there)
    for field, stated, fitted in _differences(name, component, calibration):
        yield OTHER_CALIBRATION.broken(
            document.path,
            f"{field} of {name} is {stated}, of the revision {fitted}",
            pointer=there,
        )


def _revision(snapshot: CheckedSnapshot, sha256: str) -> CheckedDocument | None:
    for document in snapshot.documents("calibration"):
        if layout.document_name(document.path) == sha256:
            return document
    return None


def _differences(
    name: str, component: Component, calibration: Calibration
) -> Iterator[tuple[str, object, object]]:
    """Yield field, stated and fitted value of what a component and its revision differ in."""
    if component.target != calibration.device:
        yield "target", component.target, calibration.device
    base = calibration.base
    if base is None or base.kind != "timing-profile":
        yield "base model", "a timing profile", "none" if base is None else base.kind
        return
    if base.component != name:
        yield "component", name, base.component
    scale, offset = base.numbers.get("scale"), base.numbers.get("offset_s")
    if scale != float(component.calibration_scale):
        yield "calibration_scale", component.calibration_scale, scale
    stated = float(component.calibration_offset_ns)
    fitted = None if offset is None else offset * _NS_PER_S
    if fitted is None or not math.isclose(stated, fitted, rel_tol=_SAME):
        yield "calibration_offset_ns", component.calibration_offset_ns, fitted


CALIBRATED_PROFILES = Check(
    id="calibrated-profiles",
    documentation="Calibrated components of timing profiles rest on a judged revision.",
    rules=(NO_TARGET, NO_REVISION, NO_REPORT, OTHER_CALIBRATION, UNKNOWN_CALIBRATION),
    judge_snapshot=judge_profiles,
)
