"""Fitted models as documents and back: the one door to both directions."""

from __future__ import annotations

from perfdb_git.providers.fitted_decoding import FittedPredictor, decode_model
from perfdb_git.providers.fitted_encoding import (
    encode_curve,
    encode_gaussian_process,
    encode_scale_offset,
    encode_trees,
)
from perfdb_git.providers.fitted_intervals import OneWidth, TwoRegimes, encode_interval
from perfdb_git.providers.hardware_numbers import hardware_from_numbers, hardware_numbers

__all__ = [
    "FittedPredictor",
    "OneWidth",
    "TwoRegimes",
    "decode_model",
    "encode_curve",
    "encode_gaussian_process",
    "encode_interval",
    "encode_scale_offset",
    "encode_trees",
    "hardware_from_numbers",
    "hardware_numbers",
]
