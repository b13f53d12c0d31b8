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
    label : str
        What rows of that folder say as their ``device``.
    form_factor : str or None
        Unknown where the module is neither a card nor SXM.
    """

    label: str
    form_factor: str | None


SYSTEMS: Mapping[str, System] = {
    "a100_sxm": System(label="NVIDIA A100-SXM4-80GB", form_factor="sxm"),
    "h100_sxm": System(label="NVIDIA H100 80GB HBM3", form_factor="sxm"),
    "h200_sxm": System(label="NVIDIA H200", form_factor="sxm"),
    "b200_sxm": System(label="NVIDIA B200", form_factor="sxm"),
    "b300_sxm": System(label="NVIDIA B300 SXM6 AC", form_factor="sxm"),
    "gb200": System(label="NVIDIA GB200", form_factor=None),
    "gb300": System(label="NVIDIA GB300", form_factor=None),
    "l40s": System(label="NVIDIA L40S", form_factor="pcie"),
    "rtx_pro_6000_server": System(
        label="NVIDIA RTX PRO 6000 Blackwell Server Edition", form_factor="pcie"
    ),
    "b60": System(label="Intel(R) Arc(TM) Pro B60 Graphics", form_factor="pcie"),
}
"""Folders below ``systems/data``."""

PRODUCTS: Mapping[str, str] = {
    # The folders of such rows tell the memory.
    "NVIDIA H100": "NVIDIA H100 80GB HBM3",
    # PCI id e211.
    "Intel(R) Graphics [0xe211]": "Intel(R) Arc(TM) Pro B60 Graphics",
}
"""Incomplete names of products in ``device``, and the full ones."""
