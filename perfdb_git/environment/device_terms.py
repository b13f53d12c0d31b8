"""From the names that vendors' tools print to terms of the vocabulary; nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfdb_git.model.vocabulary import Dimension

# As drivers name them, less the vendor, which older ones leave out.
_PRODUCTS: Mapping[str, tuple[str, str | None]] = {
    "A100-SXM4-80GB": ("a100_80g", "sxm"),
    "A100 80GB PCIe": ("a100_80g", "pcie"),
    "H100 80GB HBM3": ("h100_80g", "sxm"),
    "H100 PCIe": ("h100_80g", "pcie"),
    "H200": ("h200_141g", "sxm"),
    "H200 NVL": ("h200_141g", "pcie"),
    "B200": ("b200", "sxm"),
    "B300 SXM6 AC": ("b300", "sxm"),
    "GB200": ("gb200", None),
    "GB300": ("gb300", None),
    "L40S": ("l40s", "pcie"),
    "RTX PRO 6000 Blackwell Server Edition": ("rtx_pro_6000_blackwell_server", "pcie"),
    "Intel(R) Arc(TM) Pro B60 Graphics": ("arc_pro_b60", "pcie"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTerm:
    """A device by its canonical term, with the form factor where the name tells it."""

    device: str
    form_factor: str | None


def term_of_product(product: str, dimension: Dimension) -> DeviceTerm | None:
    """Return the term of a GPU that a vendor's tool names, or None where there is none.

    Parameters
    ----------
    product : str
        Such as "NVIDIA H200".
    dimension : Dimension
        The vocabulary's ``device``.
    """
    known = _PRODUCTS.get(product.removeprefix("NVIDIA ").strip())
    if known is None or known[0] not in dimension.terms:
        return None
    return DeviceTerm(device=known[0], form_factor=known[1])


def term_of_processor(name: str | None, dimension: Dimension) -> DeviceTerm | None:
    """Return the term of a processor by the name that `processor_term` makes, or None."""
    if name is None or name not in dimension.terms:
        return None
    return DeviceTerm(device=name, form_factor=None)
