"""Facts of an H200 as a calibration of the shipped tables states them."""

from __future__ import annotations

from perfdb_git.operations.features.hardware import Hardware

_SHEET = "aiconfigurator-core 0.12.0 (PyPI, Apache-2.0), systems/h200_sxm.yaml"
_TILES = (
    *((64, 64), (64, 128), (128, 64), (128, 128), (64, 256), (128, 256), (256, 128)),
    *((128, 192), (192, 128), (64, 192), (32, 128), (16, 128), (256, 64), (128, 32), (64, 32)),
)

H200 = Hardware(
    device="h200_141g",
    multiprocessors=132,
    l2_bytes=50e6,
    memory_bytes_per_s=4.8e12,
    operations_per_s={
        **{"bfloat16": 989e12, "float16": 989e12},
        **{"float8": 1978e12, "float8_block": 1978e12, "int8": 1978e12},
    },
    link_bytes_per_s=450e9,
    matrix_tiles=_TILES,
    query_tiles=(64, 128, 192, 256),
    launch_floor_s=4e-6,
    sources={
        "multiprocessors": "NVIDIA H100 Tensor Core GPU Architecture (whitepaper): 132 SMs of SXM5",
        "l2_bytes": "the same whitepaper: 50 MB",
        "memory_bytes_per_s": f"{_SHEET}, gpu.mem_bw",
        "operations_per_s": f"{_SHEET}, gpu.*_tc_flops; float16 as bfloat16",
        "link_bytes_per_s": f"{_SHEET}, node.intra_node_bw (one direction)",
        "matrix_tiles": "chosen by cross-validation, see docs/adr/006-forms-of-calibration.md",
        "query_tiles": "chosen by cross-validation, see docs/adr/006-forms-of-calibration.md",
        "launch_floor_s": "fastest rows of the training evidence, rounded down",
    },
)
