"""aiconfigurator's labels in the vocabulary's terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DTYPES: Mapping[str, str | None] = {
    "bfloat16": "bfloat16",
    "float16": "float16",
    "half": "float16",
    "int8": "int8",
    "fp8": "float8",
    "fp8_e4m3": "float8",
    "fp8_block": "float8_block",
    "fp4": "float4",
    "nvfp4": "nvfp4",
    "int8_wo": "int8_weight_only",
    "int4_wo": "int4_weight_only",
    "sq": "int8_smoothquant",
    "w4afp8": "w4a8_fp8",
    "w4a16_mxfp4": "w4a16_mxfp4",
    "w4a8_mxfp4_mxfp8": "w4a8_mxfp4_mxfp8",
    # What the library takes where nobody says.
    "default": None,
}
"""Element types and quantisations; the label itself stays a key of the source."""

PHASES: Mapping[str, str | None] = {
    "context": "prefill",
    "generation": "decode",
    "verify": "verify",
}

GENERIC_KERNELS = frozenset({"torch_flow", "default"})
"""Labels of ``kernel_source`` that say which code path called a kernel, but name none."""

TRTLLM_ALL_REDUCE: Mapping[str, str | None] = {"TRTLLM": "trtllm_custom_allreduce"}
"""Names of all-reduce kernels that need one; any other label of ``kernel_source`` is one."""

UNKNOWN_VERSIONS = frozenset({"unknown", "kernel-level"})
"""Labels of ``version`` that are no version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A folder of one system.

    Attributes
    ----------
    device, form_factor : str or None
        Terms of the vocabulary; a form factor is unknown where the module is neither card nor SXM.
    label : str
        What rows of that folder say as their ``device``.
    """

    device: str
    form_factor: str | None
    label: str


SYSTEMS: Mapping[str, System] = {
    "a100_sxm": System(device="a100_80g", form_factor="sxm", label="NVIDIA A100-SXM4-80GB"),
    "h100_sxm": System(device="h100_80g", form_factor="sxm", label="NVIDIA H100 80GB HBM3"),
    "h200_sxm": System(device="h200_141g", form_factor="sxm", label="NVIDIA H200"),
    "b200_sxm": System(device="b200", form_factor="sxm", label="NVIDIA B200"),
    "b300_sxm": System(device="b300", form_factor="sxm", label="NVIDIA B300 SXM6 AC"),
    "gb200": System(device="gb200", form_factor=None, label="NVIDIA GB200"),
    "gb300": System(device="gb300", form_factor=None, label="NVIDIA GB300"),
    "l40s": System(device="l40s", form_factor="pcie", label="NVIDIA L40S"),
    "rtx_pro_6000_server": System(
        device="rtx_pro_6000_blackwell_server",
        form_factor="pcie",
        label="NVIDIA RTX PRO 6000 Blackwell Server Edition",
    ),
    "b60": System(
        device="arc_pro_b60", form_factor="pcie", label="Intel(R) Arc(TM) Pro B60 Graphics"
    ),
}
"""Folders below ``systems/data``."""

DEVICES: Mapping[str, str] = {
    **{system.label: system.device for system in SYSTEMS.values()},
    # The folder's name tells the memory, and PCI id e211 is the B60's.
    "NVIDIA H100": "h100_80g",
    "Intel(R) Graphics [0xe211]": "arc_pro_b60",
}
"""What rows say as their ``device``, in the vocabulary's terms."""
