"""Product names that drivers report, and the vocabulary's typed names of the same devices."""

from __future__ import annotations

from collections.abc import Mapping

PRODUCTS: Mapping[str, str] = {
    "A100-SXM4-80GB": "a100_sxm4_80g",
    "A100 80GB PCIe": "a100_pcie_80g",
    "H100 80GB HBM3": "h100_sxm5_80g",
    "H100 PCIe": "h100_pcie_80g",
    "H200": "h200_sxm",
}
"""Names as the NVIDIA driver gives them, less the vendor, which older drivers leave out; each is
one product with one form factor. Names that several products share are not here."""


def typed_name(product: str) -> str | None:
    """Return what a user would type for a product, or None where it is not known."""
    return PRODUCTS.get(product.removeprefix("NVIDIA ").strip())
