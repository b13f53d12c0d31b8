"""What vendors' tools print, in the layouts of several releases, names and ids included."""

from __future__ import annotations

import json
from collections.abc import Mapping

UUID = "GPU-0a1b2c3d-1111-2222-3333-0123456789ab"
SERIAL = "1650522009999"
DEPRECATED = "Requested functionality has been deprecated"

_POWER = {
    11: """<power_readings><power_state>P0</power_state><power_draw>66.50 W</power_draw>
<power_limit>400.00 W</power_limit><default_power_limit>400.00 W</default_power_limit>
<enforced_power_limit>390.00 W</enforced_power_limit></power_readings>""",
    12: """<gpu_power_readings><power_state>P0</power_state><power_draw>66.50 W</power_draw>
<current_power_limit>390.00 W</current_power_limit>
<default_power_limit>400.00 W</default_power_limit></gpu_power_readings>
<module_power_readings><power_draw>N/A</power_draw></module_power_readings>""",
    13: f"""<gpu_power_readings><power_state>{DEPRECATED}</power_state>
<average_power_draw>70.25 W</average_power_draw><instant_power_draw>66.50 W</instant_power_draw>
<current_power_limit>390.00 W</current_power_limit>
<default_power_limit>400.00 W</default_power_limit></gpu_power_readings>""",
}
_DRIVERS = {11: ("515.105.01", "11.7"), 12: ("535.54.03", "12.2"), 13: ("595.58.03", "13.2")}


def nvidia_smi_xml(
    layout: int,
    *,
    products: tuple[str, ...] = ("NVIDIA A100-SXM4-80GB",),
    temperature: int = 27,
    extra: str = "",
) -> bytes:
    """Return the output of ``nvidia-smi -q -x`` in the layout of a document type."""
    driver, cuda = _DRIVERS[layout]
    gpus = "\n".join(_gpu(layout, product, temperature, extra) for product in products)
    return f"""<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v{layout}.dtd">
<nvidia_smi_log>
<timestamp>Fri Aug  4 11:44:30 2023</timestamp>
<driver_version>{driver}</driver_version>
<cuda_version>{cuda}</cuda_version>
<attached_gpus>{len(products)}</attached_gpus>
{gpus}
</nvidia_smi_log>
""".encode()


def _gpu(layout: int, product: str, temperature: int, extra: str) -> str:
    reasons = "clocks_throttle_reason" if layout == 11 else "clocks_event_reason"
    application = DEPRECATED if layout == 13 else "1275 MHz"
    return f"""<gpu id="00000000:01:00.0">
<product_name>{product}</product_name>
<persistence_mode>Enabled</persistence_mode>
<mig_mode><current_mig>Disabled</current_mig></mig_mode>
<serial>{SERIAL}</serial><uuid>{UUID}</uuid><board_id>0x100</board_id>
<vbios_version>92.00.36.00.02</vbios_version>
<gsp_firmware_version>N/A</gsp_firmware_version>
<gpu_virtualization_mode><virtualization_mode>None</virtualization_mode></gpu_virtualization_mode>
<pci><pci_bus_id>00000000:01:00.0</pci_bus_id><pci_gpu_link_info>
<pcie_gen><max_link_gen>4</max_link_gen><current_link_gen>1</current_link_gen></pcie_gen>
<link_widths><max_link_width>16x</max_link_width></link_widths></pci_gpu_link_info></pci>
<performance_state>P0</performance_state>
<{reasons}s><{reasons}_gpu_idle>Not Active</{reasons}_gpu_idle>
<{reasons}_sw_power_cap>Active</{reasons}_sw_power_cap></{reasons}s>
<fb_memory_usage><total>81920 MiB</total><used>50 MiB</used></fb_memory_usage>
<ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode>
<temperature><gpu_temp>{temperature} C</gpu_temp><memory_temp>N/A</memory_temp></temperature>
{_POWER[layout]}
<clocks><graphics_clock>1410 MHz</graphics_clock><mem_clock>1593 MHz</mem_clock></clocks>
<applications_clocks><graphics_clock>{application}</graphics_clock></applications_clocks>
<max_clocks><graphics_clock>1410 MHz</graphics_clock><mem_clock>1593 MHz</mem_clock></max_clocks>
<processes><process_info><process_name>/home/ada/train.py --token=s3cret</process_name>
</process_info></processes>
{extra}
</gpu>"""


def rocm_smi_json(*, capital: bool, cards: int = 2, temperature: str = "53.0") -> bytes:
    """Return the output of ``rocm-smi -a --json``, with the keys of ROCm 6.1 if `capital`."""
    card: Mapping[str, str] = {
        "Device ID": "0x738c",
        "Unique ID": "0x79ccd55167a2124a",
        "GUID": "55069",
        "Serial Number": SERIAL,
        "VBIOS version": "113-D3431401-101",
        "Temperature (Sensor edge) (C)": temperature,
        "Performance Level": "auto",
        "Max Graphics Package Power (W)": "290.0",
        "Average Graphics Package Power (W)": "36.0",
        "GPU use (%)": "0",
        "VRAM Total Memory (B)": "34342961152",
        "MEC firmware version": "65",
        "SMC firmware version": "00.54.29.00",
        "Card Series" if capital else "Card series": "Arcturus GL-XL [Instinct MI100]",
        "Memory Activity": "N/A",
    }
    system = {"Driver version": "6.3.6"}
    if cards > 1:
        system["(Topology) Link type between DRM devices 0 and 1"] = "PCIE"
        system["(Topology) Hops between DRM devices 0 and 1"] = "2"
    value = {f"card{number}": card for number in range(cards)} | {"system": system}
    return json.dumps(value, indent=4).encode()


def lscpu_json(*, nested: bool, model: str = "AMD EPYC") -> bytes:
    """Return the output of ``lscpu -J``: flat until util-linux 2.36, nested after it."""
    cpu = [
        {"field": "CPU family:", "data": "25"},
        {"field": "Model:", "data": "17"},
        {"field": "Thread(s) per core:", "data": "1"},
        {"field": "Core(s) per socket:", "data": "2"},
        {"field": "Socket(s):", "data": "1"},
    ]
    name = {"field": "Model name:", "data": model}
    rest = [
        {"field": "CPU(s):", "data": "2"},
        {"field": "L2 cache:", "data": "2 MiB (2 instances)"},
        {"field": "NUMA node(s):", "data": "1"},
        {"field": "Hypervisor vendor:", "data": "KVM"},
    ]
    vendor = {"field": "Vendor ID:", "data": "AuthenticAMD"}
    entries: list[object] = (
        [{**vendor, "children": [{**name, "children": cpu}]}, *rest]
        if nested
        else [vendor, name, *cpu, *rest]
    )
    return json.dumps({"lscpu": entries}).encode()
