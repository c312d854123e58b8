"""What a rewriting lost: every word that matters is named when it goes, and fillers may go."""

import re

import pytest

import wordsens as ws

PAGES = [
    *dict.fromkeys(pair.first for pair in ws.meaning_pairs() if pair.length == "page"),
    *(review.text for review in ws.shipped_reviews()),
]
SMALL_NUMBERS = (
    "two three four five six seven eight nine ten eleven twelve twenty thirty forty "
    "fifty sixty hundred thousand"
)
MATTERS = {
    "negation": r"\b(?:not|no|never|nobody|nothing|nowhere|none|neither|nor|without)\b|n['’]t\b",
    "number": rf"\d[\d.,:]*\d|\d|\b(?:{SMALL_NUMBERS.replace(' ', '|')}|first|second|third)\b",
    "condition": r"\b(?:only if|if|unless|until|till|except|at most|at least|provided that|as long "
    r"as)\b",
    "only": r"\bonly\b",
}
FILLERS = r"\b(?:very|really|just|quite|also|even|still|already|please|simply|so|then|well|indeed|however|the|a|an)\b"  # noqa: E501


def deletions(pattern, each=1):
    """The texts that are shipped, without one match of the pattern at a time; of the matches each
    so many-th."""
    matches = [
        (text, match) for text in PAGES for match in re.finditer(pattern, text, re.IGNORECASE)
    ]
    for text, match in matches[::each]:
        start, stop = match.span()
        yield text, text[:start].removesuffix(" ") + text[stop:], start, stop


@pytest.mark.parametrize("kind", MATTERS)
def test_a_deleted_word_that_matters_is_named_with_its_place(kind):
    named = [
        any(loss.start < stop and start < loss.stop for loss in ws.lost_meaning(text, shorter))
        for text, shorter, start, stop in deletions(MATTERS[kind])
    ]
    assert len(named) > 20
    assert sum(named) >= 0.98 * len(named)


def test_a_deleted_filler_is_no_loss():
    alarms = [
        bool(ws.lost_meaning(text, shorter)) for text, shorter, *_ in deletions(FILLERS, each=5)
    ]
    assert len(alarms) > 200
    assert sum(alarms) < 0.03 * len(alarms)


@pytest.mark.parametrize("text", PAGES)
def test_sentences_may_change_places(text):
    sentences = re.split(r"(?<=[.!?])\s+", text)
    assert ws.lost_meaning(text, " ".join(reversed(sentences))) == ()


@pytest.mark.parametrize(
    ("original", "rewritten"),
    [
        ("The two doors aren't open at 5 pm.", "At 17:00 both 2 doors are not open."),
        ("It times out after 2000 ms.", "Time-out: 2 seconds."),
        ("Half of the disk is full.", "50% of the disk is full."),
        ("Smoking is not allowed.", "Smoking is forbidden."),
        ("If the light is red, stop.", "Stop when the light is red."),
        ("You must sign by 3 May.", "You have to sign by May 3rd."),
        ("Provided that Marta agrees, Marta pays.", "Pay if Marta agrees."),
        ("Use no more than 5 GB.", "Use at most 5 gigabytes."),
        ("Take it once a day till Friday.", "Take it daily until Friday."),
        ("Half a year after the European Union agreed", "6 months after the EU agreed"),
        ("Send up to 250 MB within 5 days.", "Send 250 MB at most in max. 5 days."),
        ("It is up to you.", "You decide."),
        ("They shall renew it.", "They will renew it."),
        ("You shall renew it.", "You must renew it."),
        ("Avoid PII in logs.", "No PII in logs."),
        ("Do not log PII.", "Avoid logging PII."),
        ("It avoids loss.", "It prevents loss."),
        ("", "Anything."),
    ],
)
def test_what_is_said_in_another_way_is_kept(original, rewritten):
    assert ws.lost_meaning(original, rewritten) == ()


@pytest.mark.parametrize(
    ("original", "rewritten", "losses"),
    [
        (
            "Refund only if it isn't worn.",
            "Refund if it is worn.",
            [("only", "only"), ("negation", "isn't")],
        ),
        ("Open it unless Marta objects.", "Open it.", [("condition", "unless"), ("name", "Marta")]),
        ("Pay at most 40 euros.", "Pay 40 euros.", [("condition", "at most")]),
        ("Use over 3 cups.", "Use 3 cups.", [("condition", "over")]),
        ("Put it over there.", "Put it there.", []),
        ("Up to 250 MB", "250 MB", [("condition", "Up to")]),
        ("Pay within 5 days.", "Pay 5 days.", [("condition", "within")]),
        ("Pay within 5 days.", "Pay in 5 days.", [("condition", "within")]),
        ("The tenant shall renew it.", "The tenant renews it.", [("modality", "shall")]),
        ("Avoid PII in logs.", "PII in logs.", [("negation", "Avoid")]),
        ("Open it unless it rains.", "Open it if it rains.", [("negation", "unless")]),
        ("Wait 3 days.", "Wait 3 hours.", [("quantity", "3 days")]),
        ("Wait 3 days.", "Wait for days.", [("quantity", "3 days")]),
        ("One member votes.", "A member votes.", [("quantity", "One")]),
        ("At 5 pm we call.", "At 5 we call.", [("time", "5 pm")]),
        ("Due on 3 May 2024.", "Due on 3 May.", [("time", "3 May 2024")]),
        ("Due on 3 May.", "Due on 4 May.", [("time", "3 May")]),
        ("Due 3 April 2024.", "Due 03/04/2024.", [("time", "3 April 2024")]),
        ("Send it on Monday.", "Send it.", [("time", "Monday")]),
        ("You may leave.", "You leave.", [("modality", "may")]),
        (
            "All may enter, except when it rains.",
            "All may enter when it rains.",
            [("condition", "except")],
        ),
        ("Nobody's hurt.", "It's hurt.", [("negation", "Nobody's")]),
    ],
)
def test_what_is_lost(original, rewritten, losses):
    assert [(loss.kind, loss.text) for loss in ws.lost_meaning(original, rewritten)] == losses


def test_one_negation_of_three_is_lost_and_it_is_the_right_one():
    original = "Never use it. Do not open it. It is not safe."
    (loss,) = ws.lost_meaning(original, "It is not safe. Open it. Never use it.")
    assert (loss.sentence, original[loss.start : loss.stop]) == ("Do not open it.", "not")


def test_the_first_word_of_a_sentence_belongs_to_it():
    (loss,) = ws.lost_meaning("Wait here. Never open it.", "Wait here. Open it.")
    assert loss.sentence == "Never open it."


def test_a_sentence_may_go_over_lines_but_not_over_the_entries_of_a_list():
    (loss,) = ws.lost_meaning("# Rules\n- Do not\n  open it\n- Wait", "Rules: open it, wait")
    assert loss.sentence == "- Do not\n  open it"


def test_no_other_input_than_texts():
    with pytest.raises(ws.InputError, match="rewritten"):
        ws.lost_meaning("a", b"a")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("original", "rewritten", "texts"),
    [
        ("The dose is 0.5 mg, not 5 mg.", "dose 5 mg, not 0.5 mg", ["0.5 mg", "5 mg"]),
        (
            "Rome pays Oslo 30 euros; Oslo pays Bonn 70.",
            "Rome pays Oslo 70 euros; Oslo pays Bonn 30.",
            ["30 euros", "70"],
        ),
        ("Within 5 days, pay 20 euros.", "Pay 20 euros within 5 days.", []),
        ("Set retries to 3 and the limit to 9.", "Set the limit to 9 and retries to 3.", []),
    ],
)
def test_numbers_in_each_others_places_are_lost(original, rewritten, texts):
    assert [loss.text for loss in ws.lost_meaning(original, rewritten)] == texts
