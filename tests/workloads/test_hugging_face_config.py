"""Configurations of published models, and what is refused of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfdb_git.errors import InvalidInputError, UsageError
from perfdb_git.workloads.hugging_face_config import model_of_config
from perfdb_git.workloads.transformer_documents import read_transformer_model

LLAMA_3_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 128000,
    "eos_token_id": 128001,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "initializer_range": 0.02,
    "intermediate_size": 14336,
    "max_position_embeddings": 8192,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.40.0.dev0",
    "use_cache": True,
    "vocab_size": 128256,
}
PHI_2: dict[str, Any] = {
    "_name_or_path": "microsoft/phi-2",
    "architectures": ["PhiForCausalLM"],
    "embd_pdrop": 0.0,
    "hidden_act": "gelu_new",
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "layer_norm_eps": 1e-05,
    "model_type": "phi",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "partial_rotary_factor": 0.4,
    "qk_layernorm": False,
    "resid_pdrop": 0.1,
    "rope_theta": 10000.0,
    "torch_dtype": "float16",
    "vocab_size": 51200,
}


def model(config: dict[str, Any], **changes: Any) -> Any:
    return model_of_config({**config, **changes}, document="config.json")


def test_grouped_queries_and_a_gate() -> None:
    found = model(LLAMA_3_8B)
    assert (found.query_heads, found.kv_heads, found.head_size) == (32, 8, 128)
    assert (found.norm, found.activation, found.block) == ("rms", "silu_mul", "sequential")
    assert (found.feedforward_size, found.vocabulary_size) == (14336, 128256)
    assert (found.blocks, found.dtype) == (32, "bfloat16")
    assert found.name == "a llama of 32 blocks, hidden size 4096"


def test_without_key_value_heads_every_head_has_its_own() -> None:
    config = {name: value for name, value in LLAMA_3_8B.items() if name != "num_key_value_heads"}
    assert model(config).kv_heads == 32
    assert model(LLAMA_3_8B, head_dim=64).head_size == 64


def test_a_parallel_block_without_a_gate() -> None:
    found = model(PHI_2)
    assert (found.norm, found.activation, found.block) == ("layer", "gelu", "parallel")
    assert (found.name, found.head_size) == ("microsoft/phi-2", 80)
    # What the rope question does not state is said.
    assert "of which 0.4 is rotated" in (found.source or "")


def test_a_folder_is_no_name() -> None:
    assert model(PHI_2, _name_or_path="/home/ada/models/phi-2/").name == "phi-2"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"num_local_experts": 8, "num_experts_per_tok": 2}, "num_local_experts (a mixture of exp"),
        ({"n_routed_experts": 64}, "n_routed_experts (a mixture of experts)"),
        ({"sliding_window": 4096}, "sliding_window (a sliding attention window)"),
        ({"sliding_window": 4096, "use_sliding_window": True}, "use_sliding_window (a sliding"),
        ({"kv_lora_rank": 512}, "kv_lora_rank (multi-head latent attention)"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantization_config (quantised weig"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types (layers that diff"),
        ({"pretraining_tp": 2}, "pretraining_tp (projections in slices)"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor (a rotation of a part"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "rope_parameters (a rotation of"),
        ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping (a field that is not known"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu' has no elementwise kind"),
        ({"model_type": "mixtral"}, "model_type 'mixtral' is not one whose blocks are known"),
        ({"torch_dtype": "float8_e4m3fn"}, "its element type is 'float8_e4m3fn'"),
    ],
)
def test_what_changes_the_work_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        model(LLAMA_3_8B, **changes)
    assert caught.value.code == "unsupported-model"
    assert named in caught.value.message


def test_every_refused_field_is_named() -> None:
    with pytest.raises(InvalidInputError) as caught:
        model(LLAMA_3_8B, sliding_window=4096, quantization_config={}, num_experts=4)
    for name in ("sliding_window", "quantization_config", "num_experts"):
        assert name in caught.value.message


def test_what_is_switched_off_is_no_work() -> None:
    off = {
        "sliding_window": 4096,
        "use_sliding_window": False,
        "max_window_layers": 28,
        "quantization_config": None,
        "num_experts": None,
        "layer_types": ["full_attention"],
        "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0},
    }
    assert model(LLAMA_3_8B, **off) == model(LLAMA_3_8B)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"hidden_size": "4096"}, "/hidden_size"),
        ({"num_hidden_layers": None}, "/num_hidden_layers"),
        ({"num_attention_heads": 0}, "/num_attention_heads"),
        ({"hidden_size": 4100}, "/head_dim"),
        ({"num_key_value_heads": True}, "/num_key_value_heads"),
    ],
)
def test_a_size_is_a_positive_whole_number(changes: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        model(LLAMA_3_8B, **changes)
    assert (caught.value.code, caught.value.pointer) == ("bad-config", pointer)


def test_heads_share_evenly() -> None:
    with pytest.raises(InvalidInputError, match="32 query heads do not share 5"):
        model(LLAMA_3_8B, num_key_value_heads=5)


def test_a_file_is_a_configuration_or_our_own_document(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_3_8B))
    assert read_transformer_model(path).value == model(LLAMA_3_8B)
    own = Path(__file__).parents[2] / "docs/examples/llama-2-70b.yaml"
    assert read_transformer_model(own).value.kv_heads == 8
    path.write_text("{}")
    with pytest.raises(InvalidInputError) as caught:
        read_transformer_model(path)
    assert caught.value.code == "no-model"
    with pytest.raises(UsageError, match=r"none\.json cannot be read"):
        read_transformer_model(Path("none.json"))


def test_heads_of_our_own_document_share_evenly(tmp_path: Path) -> None:
    own = Path(__file__).parents[2] / "docs/examples/llama-2-70b.yaml"
    path = tmp_path / "model.yaml"
    path.write_text(own.read_text().replace("kv_heads: 8", "kv_heads: 7"))
    with pytest.raises(InvalidInputError, match="64 query heads do not share 7"):
        read_transformer_model(path)


def test_our_own_document_obeys_its_schema(tmp_path: Path) -> None:
    own = Path(__file__).parents[2] / "docs/examples/llama-2-70b.yaml"
    path = tmp_path / "model.yaml"
    path.write_text(own.read_text() + "experts: 8\n")
    with pytest.raises(InvalidInputError, match="experts"):
        read_transformer_model(path)
