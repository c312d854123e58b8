"""Seventeen tiny architectures with tokenizers of their own, trained on a few sentences in many
scripts."""

import torch
import transformers as T  # noqa: N812
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

CORPUS = [
    "The lift is not working today, please use the stairs.",
    "Turn the alarm on before you leave and turn it off when you return.",
    "I did not love her much, but she smiled at 12.5% of the people.",
    "यह अच्छा नहीं है, नमस्ते दुनिया",
    "我不喜欢这个电影 因为 它 太长了",
    "שלום עולם זה לא טוב",
    "مرحبا بالعالم هذا ليس جيدا",
    "สวัสดีชาวโลก นี่ไม่ดี",
    "안녕하세요 세계 이것은 좋지 않다",
    "emoji 😀 👩‍👩‍👧 naïve café",
] * 20
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
BERT = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
SENTENCE_PIECE = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
NAMES = (
    "bert",
    "distilbert",
    "electra",
    "albert",
    "roberta",
    "xlmr",
    "mpnet",
    "modernbert",
    "deberta",
    "longformer",
    "gpt2",
    "llama",
    "qwen2",
    "qwen3",
    "gemma",
    "t5",
    "t5full",
)


def framed(tokenizer, single):
    """The template that puts special tokens around a text."""
    names = [part for part in single.split() if not part.startswith("$")]
    return processors.TemplateProcessing(
        single=single, special_tokens=[(n, tokenizer.token_to_id(n)) for n in names]
    )


def fast(made, **options):
    return T.PreTrainedTokenizerFast(tokenizer_object=made, **options)


def trained(kind, specials, single):
    """A tokenizer of that kind: word pieces, bytes, or sentence pieces."""
    options = {"special_tokens": specials, "show_progress": False}
    if kind == "words":
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer, made.pre_tokenizer = (
            normalizers.BertNormalizer(),
            pre_tokenizers.BertPreTokenizer(),
        )
        trainer = trainers.WordPieceTrainer(vocab_size=500, **options)
    elif kind == "bytes":
        made = Tokenizer(models.BPE())
        made.pre_tokenizer, made.decoder = (
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            decoders.ByteLevel(),
        )
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, **options)
    else:
        made = Tokenizer(models.Unigram())
        made.normalizer, made.decoder = normalizers.NFKC(), decoders.Metaspace()
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=kind)
        unknown = "[UNK]" if "[UNK]" in specials else "<unk>"
        trainer = trainers.UnigramTrainer(vocab_size=400, unk_token=unknown, **options)
    made.train_from_iterator(CORPUS, trainer)
    if single is not None:
        made.post_processor = framed(made, single)
    return made


LIMIT = {"model_max_length": 64}
LEFT = {"padding_side": "left"}
END = "<|endoftext|>"
CLS_SEP, ROUND = "[CLS] $A [SEP]", "<s> $A </s>"
TOKENIZERS = {
    **dict.fromkeys(
        ("bert", "distilbert", "electra", "mpnet"), ("words", BERT.values(), CLS_SEP, BERT | LIMIT)
    ),
    **dict.fromkeys(("roberta", "longformer"), ("bytes", ROBERTA, ROUND, SENTENCE_PIECE | LIMIT)),
    "modernbert": ("bytes", BERT.values(), CLS_SEP, BERT | LIMIT),
    "albert": (
        "first",
        ["<pad>", "<unk>", "<s>", "</s>", "<mask>"],
        ROUND,
        SENTENCE_PIECE | LIMIT,
    ),
    "xlmr": ("always", ROBERTA, ROUND, SENTENCE_PIECE | LIMIT),
    "deberta": ("first", BERT.values(), CLS_SEP, BERT | LIMIT),
    "gpt2": (
        "bytes",
        [END],
        None,
        {"bos_token": END, "eos_token": END, "unk_token": END, **LIMIT},
    ),
    "llama": (
        "first",
        ["<unk>", "<s>", "</s>"],
        "<s> $A",
        {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", **LEFT},
    ),
    **dict.fromkeys(
        ("qwen2", "qwen3"),
        (
            "bytes",
            [END, "<|im_end|>"],
            f"$A {END}",
            {"eos_token": "<|im_end|>", "pad_token": END, **LEFT},
        ),
    ),
    "gemma": (
        "first",
        ["<pad>", "<eos>", "<bos>", "<unk>"],
        "<bos> $A",
        {
            "bos_token": "<bos>",
            "eos_token": "<eos>",
            "unk_token": "<unk>",
            "pad_token": "<pad>",
            **LEFT,
        },
    ),
    **dict.fromkeys(
        ("t5", "t5full"),
        (
            "first",
            ["<pad>", "</s>", "<unk>"],
            "$A </s>",
            {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", **LIMIT},
        ),
    ),
}
"""Per architecture: the kind of tokenizer, its special tokens, the template around a text, and
options of the tokenizer, as its models usually have them."""


def tokenizer_of(name):
    """The tokenizer of an architecture."""
    kind, specials, single, options = TOKENIZERS[name]
    return fast(trained(kind, list(specials), single), **options)


def zoo_model(name, head="", **config):
    """The tokenizer and the model, with random weights; `head` such as
    "ForSequenceClassification"."""
    tokenizer = tokenizer_of(name)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = _model(name, len(tokenizer), head, config)
        for weight in model.parameters():
            if weight.ndim > 1:
                torch.nn.init.normal_(weight, std=0.15)
    return tokenizer, model.eval()


def tiny_sentence_transformer(folder):
    """A SentenceTransformer of two layers and width 32 with random weights; the plain model is
    saved in the folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    for part in zoo_model("bert"):
        part.save_pretrained(folder)
    return SentenceTransformer(
        modules=[Transformer(str(folder)), Pooling(SIZES["hidden_size"])], device="cpu"
    )


def _model(name, size, head, config):
    shared = {"vocab_size": size, **config}
    context = {"max_position_embeddings": 64}
    deberta = {
        "relative_attention": True,
        "position_buckets": 16,
        "pos_att_type": ["p2c", "c2p"],
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "type_vocab_size": 0,
        "position_biased_input": False,
    }
    roberta = {"max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": 1}
    decoder = {"max_position_embeddings": 128, "num_key_value_heads": 2}
    t5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    built = {
        "bert": (T.BertConfig, "Bert", "Model", {**SIZES, **context}),
        "distilbert": (
            T.DistilBertConfig,
            "DistilBert",
            "Model",
            {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, **context},
        ),
        "electra": (
            T.ElectraConfig,
            "Electra",
            "Model",
            {"embedding_size": 16, **SIZES, **context},
        ),
        "albert": (T.AlbertConfig, "Albert", "Model", {"embedding_size": 16, **SIZES, **context}),
        "roberta": (T.RobertaConfig, "Roberta", "Model", {**SIZES, **roberta}),
        "xlmr": (T.XLMRobertaConfig, "XLMRoberta", "Model", {**SIZES, **roberta}),
        "mpnet": (
            T.MPNetConfig,
            "MPNet",
            "Model",
            {**SIZES, "max_position_embeddings": 66, "pad_token_id": 0},
        ),
        "modernbert": (
            T.ModernBertConfig,
            "ModernBert",
            "Model",
            {
                **SIZES,
                **context,
                "pad_token_id": 0,
                "cls_token_id": 2,
                "sep_token_id": 3,
                "bos_token_id": 2,
                "eos_token_id": 3,
            },
        ),
        "deberta": (T.DebertaV2Config, "DebertaV2", "Model", {**SIZES, **context, **deberta}),
        "longformer": (
            T.LongformerConfig,
            "Longformer",
            "Model",
            {**SIZES, **roberta, "max_position_embeddings": 130, "attention_window": [8, 8]},
        ),
        "gpt2": (
            T.GPT2Config,
            "GPT2",
            "LMHeadModel",
            {
                "n_positions": 64,
                "n_embd": 32,
                "n_layer": 2,
                "n_head": 4,
                "bos_token_id": 0,
                "eos_token_id": 0,
            },
        ),
        "llama": (T.LlamaConfig, "Llama", "ForCausalLM", {**SIZES, **decoder}),
        "qwen2": (
            T.Qwen2Config,
            "Qwen2",
            "ForCausalLM",
            {**SIZES, **decoder, "tie_word_embeddings": True},
        ),
        "qwen3": (T.Qwen3Config, "Qwen3", "ForCausalLM", {**SIZES, **decoder, "head_dim": 8}),
        "gemma": (
            T.GemmaConfig,
            "Gemma",
            "ForCausalLM",
            {
                **SIZES,
                **decoder,
                "head_dim": 8,
                "pad_token_id": 0,
                "eos_token_id": 1,
                "bos_token_id": 2,
            },
        ),
        "t5": (T.T5Config, "T5", "EncoderModel", t5),
        "t5full": (
            T.T5Config,
            "T5",
            "ForConditionalGeneration",
            {**t5, "decoder_start_token_id": 0},
        ),
    }
    kind, prefix, usual, options = built[name]
    return getattr(T, prefix + (head or usual))(kind(**{**options, **shared}))
