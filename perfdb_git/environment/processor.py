"""The host: processor, caches, NUMA nodes, memory, kernel, clock policy."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdb_git.environment.accelerators import stated
from perfdb_git.environment.sources import read_fact, run_tool
from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.strict_json import read_json
from perfdb_git.model.values import JsonValue

_SYSFS_CPU = "sys/devices/system/cpu"
_NO_CONTENT = re.compile(r"\((?:r|tm)\)|\bcpu\b|\bprocessor\b|@.*", re.IGNORECASE)
_KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What is known of the host; None is an explicit unknown, ``reasons`` say why."""

    processor: str | None
    processor_term: str | None
    sockets: int | None
    topology: str | None
    kernel: str | None
    operating_system: str | None
    clock_policy: str | None
    microcode: str | None
    notes: Mapping[str, str]
    observed: Mapping[str, JsonValue]
    reasons: Mapping[str, str]


def read_host(root: Path = Path("/")) -> Host:
    """Read what the kernel and lscpu say.

    Parameters
    ----------
    root : Path
        Where ``proc``, ``sys`` and ``etc`` are.
    """
    lscpu, reason = _lscpu()
    cpuinfo = _cpuinfo(root)
    release = _os_release(root)
    clock = _clock_policy(root)
    reasons = {} if lscpu or cpuinfo else {"processor": reason or "lscpu says nothing"}
    if clock is None:
        reasons["clock_policy"] = "the kernel shows no frequency governor"
    return Host(
        processor=_processor(lscpu, cpuinfo),
        processor_term=processor_term(lscpu),
        sockets=_integer(lscpu.get("Socket(s)")),
        topology=_topology(lscpu),
        kernel=stated(f"{platform.system()} {platform.release()}"),
        operating_system=stated(release.get("PRETTY_NAME")),
        clock_policy=clock,
        microcode=stated(cpuinfo.get("microcode")),
        notes=dict(_notes(root, lscpu)),
        observed=passing_facts(root),
        reasons=reasons,
    )


def _lscpu() -> tuple[dict[str, str], str | None]:
    output = run_tool(("lscpu", "-J"))
    if output.content is None:
        return {}, output.reason
    try:
        value = read_json(output.content, document="lscpu -J")
    except InvalidInputError as error:
        return {}, f"lscpu printed no JSON: {error.reason}"
    entries = value.get("lscpu") if isinstance(value, dict) else None
    return dict(_fields(entries)), None


def _fields(entries: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield fields of any layout: flat until util-linux 2.36, nested in ``children`` after it."""
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        name, data = entry.get("field"), entry.get("data")
        if isinstance(name, str) and isinstance(data, str) and data not in ("", "-"):
            yield name.rstrip(":"), data
        yield from _fields(entry.get("children"))


def processor_term(lscpu: Mapping[str, str]) -> str | None:
    """Return the name that a vocabulary term of this processor would have.

    A hypervisor may hide the model behind its brand; family and model number then tell it apart.
    """
    model = stated(lscpu.get("Model name") or lscpu.get("BIOS Model name"))
    if model is None:
        return None
    name = re.sub(r"[^a-z0-9]+", "_", _NO_CONTENT.sub(" ", model).lower()).strip("_")
    family, number = lscpu.get("CPU family"), lscpu.get("Model")
    if family and number and not re.search(r"[0-9]", name):
        name += f"_family{family}_model{number}"
    return name or None


def _processor(lscpu: Mapping[str, str], cpuinfo: Mapping[str, str]) -> str | None:
    model = stated(lscpu.get("Model name") or cpuinfo.get("model name"))
    if model is None:
        return stated(platform.machine())
    numbers = (("family", "CPU family"), ("model", "Model"), ("stepping", "Stepping"))
    parts = [f"{label} {lscpu[key]}" for label, key in numbers if key in lscpu]
    return stated(", ".join([model, *parts]))


def _topology(lscpu: Mapping[str, str]) -> str | None:
    counts = (
        ("sockets", "Socket(s)"),
        ("cores a socket", "Core(s) per socket"),
        ("threads a core", "Thread(s) per core"),
        ("CPUs", "CPU(s)"),
        ("NUMA nodes", "NUMA node(s)"),
    )
    return ", ".join(f"{what} {lscpu[key]}" for what, key in counts if key in lscpu) or None


def _notes(root: Path, lscpu: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in ("L1d cache", "L2 cache", "L3 cache", "Hypervisor vendor"):
        if name in lscpu:
            yield name.replace("Hypervisor vendor", "hypervisor"), lscpu[name]
    yield from _scheduling()
    memory = _memory(root).get("MemTotal")
    if memory is not None:
        # The kernel keeps a part that differs from one boot to the next.
        yield "host memory", f"{round(memory * _KIB / 2**30)} GiB"
    pages = read_fact(root / "sys/kernel/mm/transparent_hugepage/enabled")
    chosen = re.search(r"\[(\w+)\]", pages or "")
    if chosen is not None:
        yield "transparent huge pages", chosen[1]


_POLICIES = {
    getattr(os, name): name
    for name in ("SCHED_FIFO", "SCHED_RR", "SCHED_BATCH", "SCHED_IDLE")
    if hasattr(os, name)
}


def _scheduling() -> Iterator[tuple[str, str]]:
    """Yield how this process, and so what it starts, is scheduled where that is unusual."""
    if not hasattr(os, "sched_getscheduler"):
        return
    policy = _POLICIES.get(os.sched_getscheduler(0))
    if policy is not None:
        yield "scheduling policy", f"{policy}, priority {os.sched_getparam(0).sched_priority}"
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if nice != 0:
        yield "nice", str(nice)
    usable, present = len(os.sched_getaffinity(0)), os.cpu_count()
    if usable != present:
        yield "usable CPUs", f"{usable} of {present}"


def passing_facts(root: Path = Path("/")) -> dict[str, JsonValue]:
    """Return what changes while the machine runs: boot id, load, free memory, temperatures."""
    return dict(_observed(root))


def _observed(root: Path) -> Iterator[tuple[str, JsonValue]]:
    boot = read_fact(root / "proc/sys/kernel/random/boot_id")
    if boot is not None:
        yield "boot_id", boot
    load = (read_fact(root / "proc/loadavg") or "").split()
    if len(load) >= 3:
        yield "load_average", [float(part) for part in load[:3]]
    free = _memory(root).get("MemAvailable")
    if free is not None:
        yield "memory_available", {"value": free, "unit": "KiB"}
    temperatures: dict[str, JsonValue] = {}
    for zone in sorted((root / "sys/class/thermal").glob("thermal_zone*")):
        text = read_fact(zone / "temp")
        if text is not None and text.lstrip("-").isdigit():
            name = stated(read_fact(zone / "type")) or zone.name
            temperatures.setdefault(name, {"value": int(text) / 1000, "unit": "C"})
    if temperatures:
        yield "host_temperatures", temperatures


def _memory(root: Path) -> dict[str, int]:
    lines = (read_fact(root / "proc/meminfo") or "").splitlines()
    matches = [re.fullmatch(r"(\w+):\s+([0-9]+) kB", line.strip()) for line in lines]
    return {match[1]: int(match[2]) for match in matches if match}


def _cpuinfo(root: Path) -> dict[str, str]:
    """Return the facts of the first processor."""
    first = (read_fact(root / "proc/cpuinfo") or "").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs if value.strip()}


def _os_release(root: Path) -> dict[str, str]:
    lines = (read_fact(root / "etc/os-release") or "").splitlines()
    pairs = (line.partition("=") for line in lines)
    return {name: value.strip("\"'") for name, _, value in pairs}


def _clock_policy(root: Path) -> str | None:
    """Return governor, driver and boost of the processor's clocks."""
    base = root / _SYSFS_CPU
    parts: list[str] = []
    for label, name in (("governor", "scaling_governor"), ("driver", "scaling_driver")):
        values = {read_fact(path) for path in base.glob(f"cpu[0-9]*/cpufreq/{name}")} - {None}
        if values:
            parts.append(f"{label} {' and '.join(sorted(map(str, values)))}")
    boost = read_fact(base / "cpufreq/boost")
    turbo = read_fact(base / "intel_pstate/no_turbo")
    if boost in ("0", "1"):
        parts.append(f"boost {'on' if boost == '1' else 'off'}")
    elif turbo in ("0", "1"):
        parts.append(f"boost {'off' if turbo == '1' else 'on'}")
    return ", ".join(parts) or None


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() and int(text) > 0 else None
