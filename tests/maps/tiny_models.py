"""Tiny random transformers of many families, built from configurations: nothing is downloaded."""

import functools

import torch

WORDS = (
    "the",
    "film",
    "was",
    "good",
    "bad",
    "very",
    "long",
    "short",
    "and",
    "not",
    "un",
    "##like",
    "##ly",
    "don",
    "t",
)
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTEXT = 24

ENCODERS = (
    "bert",
    "roberta",
    "xlm-roberta",
    "camembert",
    "distilbert",
    "mpnet",
    "modernbert",
    "electra",
)
DECODERS = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma")
UNUSUAL = ("albert", "deberta-v2", "longformer", "t5")
"""Encoders with a layer that is called several times, with places in their scores, that pad texts,
with a decoder."""
SIZE = len(WORDS) + len(SPECIAL)

_COMMON = {
    "vocab_size": SIZE,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "max_position_embeddings": CONTEXT,
}
_ROTARY = {"num_key_value_heads": 2, "rope_theta": 100.0, "bos_token_id": 2, "eos_token_id": 3}
_CHANGES = {
    "bert": {},
    "roberta": {"max_position_embeddings": CONTEXT + 1},
    "xlm-roberta": {"max_position_embeddings": CONTEXT + 1},
    "camembert": {"max_position_embeddings": CONTEXT + 1},
    "distilbert": {},
    "mpnet": {"max_position_embeddings": CONTEXT + 2, "pad_token_id": 1},
    # The first layer attends to everything, the next two to two neighbours on each side.
    "modernbert": {
        "local_attention": 4,
        "global_attn_every_n_layers": 3,
        "cls_token_id": 2,
        "sep_token_id": 3,
    },
    "electra": {"embedding_size": 16},
    "gpt2": {"pad_token_id": None, "bos_token_id": 2, "eos_token_id": 3},
    "llama": _ROTARY,
    "mistral": {**_ROTARY, "sliding_window": None},
    "qwen2": _ROTARY,
    "qwen3": {**_ROTARY, "head_dim": 6},
    "gemma": {**_ROTARY, "head_dim": 6},
    "albert": {"embedding_size": 8},
    "deberta-v2": {
        "relative_attention": True,
        "position_buckets": 8,
        "pos_att_type": ["p2c", "c2p"],
        "type_vocab_size": 0,
    },
    "longformer": {
        "max_position_embeddings": CONTEXT + 2,
        "attention_window": [8, 8, 8],
        "pad_token_id": 1,
    },
    "t5": {"d_kv": 4, "decoder_start_token_id": 0},
    "xlnet": {},
}
_OLD_NAMES = {
    "distilbert": {
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
    },
    "gpt2": {
        "hidden_size": "n_embd",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "max_position_embeddings": "n_positions",
        "intermediate_size": "n_inner",
    },
    "t5": {
        "hidden_size": "d_model",
        "num_hidden_layers": "num_layers",
        "num_attention_heads": "num_heads",
        "intermediate_size": "d_ff",
    },
    "xlnet": {
        "hidden_size": "d_model",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "intermediate_size": "d_inner",
    },
}


def config_of(kind, **changes):
    """The configuration of a tiny model of that family."""
    from transformers import AutoConfig

    values = {**_COMMON, **_CHANGES[kind], **changes}
    if kind == "xlnet":  # which has no longest text
        del values["max_position_embeddings"]
    old = _OLD_NAMES.get(kind, {})
    return AutoConfig.for_model(
        kind, **{old.get(name, name): value for name, value in values.items()}
    )


def model_of(kind, auto="AutoModel", *, dtype=torch.float32, **changes):
    """A tiny random model of that family, the same every time, under one of transformers' auto
    classes."""
    import transformers

    stream = torch.random.get_rng_state()
    torch.manual_seed(0)
    model = getattr(transformers, auto).from_config(
        config_of(kind, **changes), attn_implementation="eager"
    )
    for parameter in model.parameters():
        # Biases and norms start at 0 and 1, where a mistake with them would not show.
        parameter.data += 0.1 * torch.randn(parameter.shape)
    torch.random.set_rng_state(stream)
    return model.to(dtype).eval()


@functools.cache
def tokenizer():
    """WordPiece over a few words, with [CLS] and [SEP] around them."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: number for number, token in enumerate((*SPECIAL, *WORDS))}
    inner = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, model_max_length=CONTEXT, **dict(zip(names, SPECIAL, strict=True))
    )


def save_tiny(folder, *kind, **changes):
    """Save a tiny model (`model_of`) and its tokenizer; returns the folder's name."""
    model_of(*(kind or ("bert",)), **changes).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)
