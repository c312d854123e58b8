"""Sentences about the attention of pairs of texts, and the answers to pairs of prompts."""

from collections.abc import Sequence

from wordsens.experiments.attention.record import AttentionRecord
from wordsens.experiments.attention.summary import AttentionSummary, summarise_attention
from wordsens.report.findings.finding import Finding, times

KNOWN = "Computed from the model's own numbers: nothing is searched for."


def attention_findings(records: Sequence[AttentionRecord]) -> list[Finding]:
    """The share of the attention that a changed word moves; of a causal model also the change of its answers."""
    return [finding for one in summarise_attention(records) for finding in (_moved(one), *_answers(one))]


def _moved(pair: AttentionSummary) -> Finding:
    most = max(range(len(pair.moved)), key=lambda at: pair.moved[at])
    heads = "the mean over the heads" if pair.head is None else f"head {pair.head}"
    changed = " and ".join(f"“{pair.tokens[0][at]}” becomes “{pair.tokens[1][at]}”" for at in pair.changed)
    sentence = (
        f"When {changed or 'nothing changes'}, {pair.share:.1%} of the attention goes elsewhere, in layer {pair.layer} "
        f"of {pair.model}, {heads}; most in the row of “{pair.names[most]}”, {pair.moved[most]:.1%}."
    )
    return Finding(f"{pair.share:.1%}", sentence, KNOWN, ())


def _answers(pair: AttentionSummary) -> list[Finding]:
    if not pair.answers:
        return []
    before, after = pair.probabilities
    told = [f"“{name}” from {times(a)} to {times(b)}" for name, a, b in zip(pair.answers, before, after, strict=True)]
    sentence = f"One word in the prompt moves the probability of the answer {' and of '.join(told)} ({pair.model})."
    return [Finding(f"{after[0] - before[0]:+.2g}".replace("-", "\N{MINUS SIGN}"), sentence, KNOWN, ())]
