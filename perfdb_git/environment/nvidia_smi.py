"""``nvidia-smi -q -x``, layouts of document types 11, 12 and 13 (drivers 4xx to 595).

Names moved between the layouts: the power limit from ``power_readings`` to
``gpu_power_readings``, the power drawn from ``power_draw`` to ``average_power_draw`` and
``instant_power_draw``, and ``clocks_throttle_reasons`` became ``clocks_event_reasons``. Only the
facts that are named here are read: serial numbers, UUIDs, process names and paths never are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from perfdb_git.environment.accelerators import Accelerator, AcceleratorReport, stated
from perfdb_git.environment.sources import read_xml
from perfdb_git.errors import InvalidInputError
from perfdb_git.model.values import JsonValue

COMMAND = ("nvidia-smi", "-q", "-x")
_ROOT = "nvidia_smi_log"
_POWER = ("gpu_power_readings", "power_readings")
_LIMITS = ("current_power_limit", "enforced_power_limit", "power_limit")
_REASONS = ("clocks_event_reasons", "clocks_throttle_reasons")
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?) (C|W|MHz|%|MiB)")


def read_nvidia_smi(content: bytes, *, document: str) -> AcceleratorReport:
    """Read the XML of ``nvidia-smi -q -x``.

    Parameters
    ----------
    content : bytes
        What the tool printed.
    document : str
        Its name, for messages.

    Raises
    ------
    InvalidInputError
        XML that cannot be read safely, or another document: 'not-nvidia-smi', 'gpu-count'.
    """
    root = read_xml(content, document=document)
    if root.tag != _ROOT:
        raise InvalidInputError(
            f"its outermost element is {root.tag!r}, not {_ROOT!r}",
            code="not-nvidia-smi",
            document=document,
            remedy="give the output of 'nvidia-smi -q -x'",
        )
    gpus = root.findall("gpu")
    attached = stated(root.findtext("attached_gpus"))
    if attached is not None and attached != str(len(gpus)):
        raise InvalidInputError(
            f"describes {len(gpus)} GPUs and says that {attached} are attached",
            code="gpu-count",
            document=document,
            remedy="give the whole output, of all GPUs",
        )
    observed: dict[str, JsonValue] = {}
    timestamp = stated(root.findtext("timestamp"))
    if timestamp is not None:
        observed["nvidia_smi_local_time"] = timestamp
    return AcceleratorReport(
        tool="nvidia-smi",
        driver=stated(root.findtext("driver_version")),
        # The newest CUDA that the driver can run, not the one that a program was built with.
        runtimes={"cuda_of_driver": stated(root.findtext("cuda_version"))},
        devices=tuple(_device(gpu) for gpu in gpus),
        observed=observed,
    )


def _device(gpu: Element) -> Accelerator:
    return Accelerator(
        product=stated(gpu.findtext("product_name")),
        firmware=_named(
            gpu, ("vbios", "vbios_version"), ("gsp", "gsp_firmware_version"), separator=" "
        ),
        clock_policy=_clock_policy(gpu),
        power_policy=_power_policy(gpu),
        notes=dict(_notes(gpu)),
        observed=dict(_observed(gpu)),
    )


def _first(gpu: Element, *paths: str) -> str | None:
    return next((text for path in paths if (text := stated(gpu.findtext(path)))), None)


def _named(gpu: Element, *facts: tuple[str, str], separator: str) -> str | None:
    """Return the facts that are known as ``name value``, joined; None if there is none."""
    known = [(name, stated(gpu.findtext(path))) for name, path in facts]
    return separator.join(f"{name} {text}" for name, text in known if text) or None


def _clock_policy(gpu: Element) -> str | None:
    return _named(
        gpu,
        ("application graphics clock", "applications_clocks/graphics_clock"),
        ("application memory clock", "applications_clocks/mem_clock"),
        ("greatest graphics clock", "max_clocks/graphics_clock"),
        ("greatest memory clock", "max_clocks/mem_clock"),
        ("auto boost", "clock_policy/auto_boost"),
        separator=", ",
    )


def _power_policy(gpu: Element) -> str | None:
    limit = _first(gpu, *(f"{group}/{name}" for group in _POWER for name in _LIMITS))
    default = _first(gpu, *(f"{group}/default_power_limit" for group in _POWER))
    parts = [f"limit {limit}"] if limit else []
    parts += [f"default limit {default}"] if default else []
    return ", ".join(parts) or None


def _notes(gpu: Element) -> Iterator[tuple[str, str]]:
    facts = {
        "ECC": "ecc_mode/current_ecc",
        "MIG": "mig_mode/current_mig",
        "persistence mode": "persistence_mode",
        "compute mode": "compute_mode",
        "virtualization": "gpu_virtualization_mode/virtualization_mode",
        "device memory": "fb_memory_usage/total",
        "PCIe generation": "pci/pci_gpu_link_info/pcie_gen/max_link_gen",
        "PCIe width": "pci/pci_gpu_link_info/link_widths/max_link_width",
        "InfoROM image": "inforom_version/img_version",
    }
    for name, path in facts.items():
        text = stated(gpu.findtext(path))
        if text is not None:
            yield name, text


def _observed(gpu: Element) -> Iterator[tuple[str, JsonValue]]:
    facts = {
        "performance_state": ("performance_state",),
        "temperature": ("temperature/gpu_temp",),
        "memory_temperature": ("temperature/memory_temp",),
        "power_drawn": tuple(
            f"{group}/{name}"
            for group in _POWER
            for name in ("instant_power_draw", "power_draw", "average_power_draw")
        ),
        "graphics_clock": ("clocks/graphics_clock", "clocks/sm_clock"),
        "memory_clock": ("clocks/mem_clock",),
        "utilization": ("utilization/gpu_util",),
        "memory_used": ("fb_memory_usage/used",),
    }
    for name, paths in facts.items():
        text = _first(gpu, *paths)
        if text is not None:
            yield name, _quantity(text)
    reasons = [reason for group in _REASONS for reason in gpu.findall(f"{group}/*")]
    if reasons:
        active = [reason.tag for reason in reasons if stated(reason.text) == "Active"]
        yield "clock_limits_active", [tag.partition("_reason_")[2] or tag for tag in active]


def _quantity(text: str) -> JsonValue:
    match = _NUMBER.fullmatch(text)
    return text if match is None else {"value": float(match[1]), "unit": match[2]}
