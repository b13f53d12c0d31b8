"""``rocm-smi -a --json``, whose keys changed between ROCm releases.

``Card series`` became ``Card Series``, ``GPU ID`` became ``Device ID``, and the package power is
an average or a current one. Only the facts that are named here are read: serial numbers, unique
ids and GUIDs never are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from perfdb_git.environment.accelerators import Accelerator, AcceleratorReport, stated
from perfdb_git.environment.sources import MAX_BYTES
from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.strict_json import read_json
from perfdb_git.model.values import JsonValue

COMMAND = ("rocm-smi", "-a", "--json")
_CARD = re.compile(r"card[0-9]+")
_FIRMWARE = re.compile(r"(.+) firmware version")
_OBSERVED = {
    "temperature_edge": ("temperature (sensor edge) (c)", "C"),
    "temperature_junction": ("temperature (sensor junction) (c)", "C"),
    "temperature_memory": ("temperature (sensor memory) (c)", "C"),
    "power_drawn_average": ("average graphics package power (w)", "W"),
    "power_drawn": ("current socket graphics package power (w)", "W"),
    "utilization": ("gpu use (%)", "%"),
    "memory_used": ("vram total used memory (b)", "B"),
}
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def read_rocm_smi(content: bytes, *, document: str) -> AcceleratorReport:
    """Read the JSON of ``rocm-smi``; warnings may stand before it.

    Parameters
    ----------
    content : bytes
        What the tool printed.
    document : str
        Its name, for messages.

    Raises
    ------
    InvalidInputError
        Too much, no strict JSON, or another document: 'file-too-large', 'not-rocm-smi'.
    """
    if len(content) > MAX_BYTES:
        raise InvalidInputError(
            f"has more than {MAX_BYTES} bytes", code="file-too-large", document=document
        )
    start = re.search(rb"^\s*\{", content, re.MULTILINE)
    value = read_json(content[start.start() :] if start else content, document=document)
    cards = {} if not isinstance(value, dict) else value
    names = sorted((name for name in cards if _CARD.fullmatch(name)), key=lambda n: int(n[4:]))
    if not names:
        raise InvalidInputError(
            "describes no card",
            code="not-rocm-smi",
            document=document,
            remedy="give the output of 'rocm-smi -a --json'",
        )
    system = _facts(cards.get("system"))
    return AcceleratorReport(
        tool="rocm-smi",
        driver=system.get("driver version"),
        runtimes={},
        devices=tuple(_device(_facts(cards[name])) for name in names),
        topology=_topology(system),
    )


def _facts(value: JsonValue) -> dict[str, str]:
    """Return what is known of a card, by key in lower case."""
    if not isinstance(value, dict):
        return {}
    texts = {key.lower(): stated(text) for key, text in value.items() if isinstance(text, str)}
    return {key: text for key, text in texts.items() if text is not None}


def _device(card: Mapping[str, str]) -> Accelerator:
    level = card.get("performance level")
    power = card.get("max graphics package power (w)")
    return Accelerator(
        product=next(
            (card[key] for key in ("card series", "device name", "card model") if key in card), None
        ),
        firmware=_firmware(card),
        clock_policy=None if level is None else f"performance level {level}",
        power_policy=None if power is None else f"limit {power} W",
        notes=dict(_notes(card)),
        observed=dict(_observed(card)),
    )


def _firmware(card: Mapping[str, str]) -> str | None:
    parts = [f"vbios {card['vbios version']}"] if "vbios version" in card else []
    for key in sorted(card):
        match = _FIRMWARE.fullmatch(key)
        if match is not None:
            parts.append(f"{match[1]} {card[key]}")
    return ", ".join(parts) or None


def _notes(card: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    facts = {
        "architecture": "gfx version",
        "device memory": "vram total memory (b)",
        "GPU overdrive (%)": "gpu overdrive value (%)",
        "memory overdrive (%)": "gpu memory overdrive value (%)",
        "compute partition": "compute partition",
        "memory partition": "memory partition",
    }
    for name, key in facts.items():
        if key in card:
            yield name, f"{card[key]} B" if key.endswith("(b)") else card[key]


def _observed(card: Mapping[str, str]) -> Iterator[tuple[str, JsonValue]]:
    for name, (key, unit) in _OBSERVED.items():
        text = card.get(key)
        if text is not None and _DECIMAL.fullmatch(text):
            yield name, {"value": float(text), "unit": unit}


def _topology(system: Mapping[str, str]) -> str | None:
    """Return the kinds of links between cards with their numbers of hops, or None."""
    links = _sorted_values(system, "(topology) link type between")
    hops = _sorted_values(system, "(topology) hops between")
    if not links:
        return None
    return f"links between cards: {', '.join(links)}" + (
        f"; hops: {', '.join(hops)}" if hops else ""
    )


def _sorted_values(system: Mapping[str, str], start: str) -> list[str]:
    return sorted({text for key, text in system.items() if key.startswith(start)})
