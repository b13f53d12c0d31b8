"""Findings as SARIF 2.1.0, which code-scanning services read.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from urllib.parse import quote

from perfdb_git import __version__
from perfdb_git.checks.rules import Rule
from perfdb_git.model.findings import Finding
from perfdb_git.model.values import JsonValue
from perfdb_git.reports.escaping import for_sarif

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_DOCUMENTATION = "docs/checks.md"


def sarif_text(findings: Sequence[Finding], rules: Sequence[Rule]) -> str:
    """Return a SARIF log of one run.

    Parameters
    ----------
    findings : sequence of Finding
        In the order in which they are shown.
    rules : sequence of Rule
        Every rule that was judged by, each code once; all findings name one of them.
    """
    places = {rule.code: number for number, rule in enumerate(rules)}
    run: dict[str, JsonValue] = {
        "tool": {
            "driver": {
                "name": "perfdb",
                "version": __version__,
                "rules": [_descriptor(rule) for rule in rules],
            }
        },
        "columnKind": "utf16CodeUnits",
        "results": [_result(finding, places[finding.code]) for finding in findings],
    }
    log: dict[str, JsonValue] = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False) + "\n"


def _descriptor(rule: Rule) -> dict[str, JsonValue]:
    return {
        "id": rule.code,
        "shortDescription": {"text": for_sarif(rule.documentation)},
        "help": {"text": for_sarif(f"{rule.remedy}. See {_DOCUMENTATION}#{rule.code}")},
        # SARIF's levels are called as our severities are.
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(finding: Finding, place: int) -> dict[str, JsonValue]:
    text = finding.message
    if finding.remedy is not None:
        text += f"\n{finding.remedy}"
    identity = f"{finding.code}\n{finding.document}\n{finding.pointer}\n{finding.row}"
    properties: dict[str, JsonValue] = {"pointer": finding.pointer, "row": finding.row}
    return {
        "ruleId": finding.code,
        "ruleIndex": place,
        "level": finding.severity,
        "message": {"text": for_sarif(text)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {
                        "uri": quote(finding.document),
                        "uriBaseId": "%SRCROOT%",
                    },
                    "region": {"startLine": finding.line or 1},
                }
            }
        ],
        # Numbers in messages change from push to push; what is wrong where does not.
        "partialFingerprints": {
            "perfdb/v1": hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest()
        },
        "properties": {key: value for key, value in properties.items() if value is not None},
    }
