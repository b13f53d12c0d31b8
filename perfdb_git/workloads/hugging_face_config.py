"""A Hugging Face ``config.json`` as a transformer: what it says of the work, or why not.

Every field has to be one that is known to change the work in a way that is counted here, or not to
change it at all. Any other that is set is refused by name: a field that is ignored would be a wrong
answer that looks right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from perfdb_git.errors import InvalidInputError
from perfdb_git.formats.json_value import JsonValue
from perfdb_git.model.transformer import (
    TRANSFORMER_MODEL_SCHEMA,
    Activation,
    BlockKind,
    NormKind,
    TransformerModel,
)

Config: TypeAlias = Mapping[str, JsonValue]

UNSUPPORTED_MODEL = "unsupported-model"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """What a ``model_type`` says without a field; ``activations`` by ``hidden_act``."""

    norm: NormKind
    block: BlockKind
    activations: Mapping[str, Activation]
    fields: frozenset[str] = frozenset()


_GATED: Mapping[str, Activation] = {"silu": "silu_mul"}
_PLAIN: Mapping[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu",
    "gelu_fast": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
    "silu": "silu",
}

_FAMILIES: Mapping[str, _Family] = {
    "llama": _Family(norm="rms", block="sequential", activations=_GATED),
    "mistral": _Family(norm="rms", block="sequential", activations=_GATED),
    "qwen2": _Family(norm="rms", block="sequential", activations=_GATED),
    # Rotates a part of each head; the vocabulary's rope has no dimension for that.
    "phi": _Family(
        norm="layer",
        block="parallel",
        activations=_PLAIN,
        fields=frozenset({"partial_rotary_factor"}),
    ),
}

_COUNTED = frozenset(
    [
        "model_type",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "vocab_size",
        "hidden_act",
        "torch_dtype",
        "dtype",
    ]
)
"""Fields that the tasks are made of."""

_WITHOUT_WORK = frozenset(
    [
        # Names and tokens.
        "_attn_implementation_autoset",
        "_name_or_path",
        "architectures",
        "bos_token_id",
        "eos_token_id",
        "pad_token_id",
        "transformers_version",
        # Training and initial weights.
        "attention_dropout",
        "embd_pdrop",
        "initializer_range",
        "resid_pdrop",
        # Constants in formulas whose number of operations stays the same.
        "layer_norm_eps",
        "rms_norm_eps",
        "rope_scaling",
        "rope_theta",
        "max_position_embeddings",
        # Biases ride in the projection's own kernel; tied weights are read as often as others.
        "attention_bias",
        "mlp_bias",
        "tie_word_embeddings",
        "use_cache",
        # Says from which layer on a window would be used; there is none.
        "max_window_layers",
    ]
)
"""Fields that change no task."""

_NEUTRAL: Mapping[str, JsonValue] = {
    "pretraining_tp": 1,
    "use_sliding_window": False,
    "use_mrope": False,
    "qk_layernorm": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
}
"""Fields that change no task with this one value."""

_MEANING: Mapping[str, str] = {
    "num_local_experts": "a mixture of experts",
    "num_experts": "a mixture of experts",
    "num_experts_per_tok": "a mixture of experts",
    "n_routed_experts": "a mixture of experts",
    "n_shared_experts": "a mixture of experts",
    "moe_intermediate_size": "a mixture of experts",
    "kv_lora_rank": "multi-head latent attention",
    "q_lora_rank": "multi-head latent attention",
    "qk_rope_head_dim": "multi-head latent attention",
    "sliding_window": "a sliding attention window",
    "use_sliding_window": "a sliding attention window",
    "layer_types": "layers that differ",
    "quantization_config": "quantised weights",
    "qk_layernorm": "norms of queries and keys",
    "pretraining_tp": "projections in slices",
    "partial_rotary_factor": "a rotation of a part of each head",
    "rope_parameters": "a rotation of a part of each head",
}

_DTYPES = frozenset(["float32", "float16", "bfloat16"])


def model_of_config(config: Config, *, document: str) -> TransformerModel:
    """Return the transformer that a ``config.json`` describes.

    Parameters
    ----------
    config : mapping
        The document.
    document : str
        Its path, for messages.

    Raises
    ------
    InvalidInputError
        'unsupported-model', naming every field that changes the work in a way that is not counted;
        'bad-config' for a field that is missing or no number.

    Notes
    -----
    Source: the configuration classes of Hugging Face ``transformers`` (``LlamaConfig``,
    ``MistralConfig``, ``Qwen2Config``, ``PhiConfig``): ``num_key_value_heads`` defaults to
    ``num_attention_heads``, ``head_dim`` to ``hidden_size / num_attention_heads``.
    """
    family = _family(config, document)
    _refuse_uncounted(config, family, document)
    reader = _Reader(config, document)
    heads = reader.size("num_attention_heads")
    hidden = reader.size("hidden_size")
    try:
        return TransformerModel(
            schema=TRANSFORMER_MODEL_SCHEMA,
            name=_name(config),
            hidden_size=hidden,
            feedforward_size=reader.size("intermediate_size"),
            blocks=reader.size("num_hidden_layers"),
            query_heads=heads,
            kv_heads=reader.size_or("num_key_value_heads", heads),
            head_size=reader.size_or("head_dim", _head_size(hidden, heads)),
            vocabulary_size=reader.size("vocab_size"),
            norm=family.norm,
            activation=_activation(config, family, document),
            block=family.block,
            position="rotary",
            dtype=_dtype(config, document),
            source=_source(config),
        )
    except ValueError as error:
        raise InvalidInputError(str(error), code="bad-config", document=document) from error


def _family(config: Config, document: str) -> _Family:
    kind = config.get("model_type")
    family = _FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None:
        _unsupported(
            f"model_type {kind!r} is not one whose blocks are known here "
            f"({', '.join(sorted(_FAMILIES))})",
            document,
            "model_type",
        )
    return family


def _refuse_uncounted(config: Config, family: _Family, document: str) -> None:
    wrong = [
        name
        for name, value in config.items()
        if value is not None and not _is_harmless(name, value, config, family)
    ]
    if not wrong:
        return
    texts = [
        f"{name} ({_MEANING.get(name, 'a field that is not known here')})" for name in sorted(wrong)
    ]
    _unsupported(f"it sets {', '.join(texts)}", document, sorted(wrong)[0])


def _is_harmless(name: str, value: JsonValue, config: Config, family: _Family) -> bool:
    if name in _COUNTED or name in _WITHOUT_WORK or name in family.fields:
        return True
    if name in _NEUTRAL:
        return value == _NEUTRAL[name] and isinstance(value, bool) == isinstance(
            _NEUTRAL[name], bool
        )
    if name == "sliding_window":
        return config.get("use_sliding_window") is False
    if name == "rope_parameters":
        return isinstance(value, dict) and value.get("partial_rotary_factor", 1) == 1
    if name == "layer_types":
        return isinstance(value, list) and all(item == "full_attention" for item in value)
    return False


def _unsupported(reason: str, document: str, field: str) -> NoReturn:
    raise InvalidInputError(
        f"the model cannot be counted: {reason}",
        code=UNSUPPORTED_MODEL,
        document=document,
        pointer=f"/{field}",
        remedy="where its blocks are dense and equal all the same, write them as a "
        "perfdb/transformer-model/v1 document",
    )


def _activation(config: Config, family: _Family, document: str) -> Activation:
    name = config.get("hidden_act")
    activation = family.activations.get(name) if isinstance(name, str) else None
    if activation is None:
        _unsupported(
            f"hidden_act {name!r} has no elementwise kind (known: "
            f"{', '.join(sorted(family.activations))})",
            document,
            "hidden_act",
        )
    return activation


def _dtype(config: Config, document: str) -> str | None:
    stated = config.get("dtype") or config.get("torch_dtype")
    if stated is not None and stated not in _DTYPES:
        _unsupported(f"its element type is {stated!r}", document, "torch_dtype")
    return None if stated is None else str(stated)


def _source(config: Config) -> str:
    text = f"Hugging Face configuration, model_type {config['model_type']}"
    part = config.get("partial_rotary_factor")
    if part is None or part == 1:
        return text
    return f"{text}; rope is asked for whole heads, of which {part} is rotated"


def _name(config: Config) -> str:
    """Return the model's name; folders of the one who saved it say nothing."""
    stated = config.get("_name_or_path")
    if isinstance(stated, str) and stated.strip("/. "):
        name = stated.rstrip("/")
        return name.rpartition("/")[2] if name.startswith(("/", ".")) else name
    return (
        f"a {config['model_type']} of {config.get('num_hidden_layers')} blocks, hidden size "
        f"{config.get('hidden_size')}"
    )


def _head_size(hidden: int, heads: int) -> int | None:
    return hidden // heads if hidden % heads == 0 else None


class _Reader:
    """Sizes of a configuration, each a positive whole number."""

    def __init__(self, config: Config, document: str) -> None:
        self._config = config
        self._document = document

    def size(self, name: str) -> int:
        return self.size_or(name, None)

    def size_or(self, name: str, default: int | None) -> int:
        value = self._config.get(name)
        if value is None:
            value = default
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidInputError(
                f"{value!r} is no positive whole number",
                code="bad-config",
                document=self._document,
                pointer=f"/{name}",
            )
        return value
