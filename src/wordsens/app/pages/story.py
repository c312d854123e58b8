"""The words of the five steps, our own."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """A step of the story.

    Attributes:
        title: its heading.
        said: paragraphs before the experiment.
        takeaway: what to remember, below it.
        formula: on a line of its own; "" for none.
    """

    title: str
    said: tuple[str, ...]
    takeaway: str
    formula: str = ""


STEPS = (
    Step(
        "What word sensitivity is",
        (
            "To a network a sentence is a list of vectors, one a word. Take one vector and push it somewhere else, no "
            "farther than its own length, and watch everything that the network makes of the sentence. How far can "
            "that move, if you push the best word in the best direction? That distance, over the size of the output, "
            "is the word sensitivity S.",
            "Two simple networks stand for two kinds of layers, both with random weights: a fully connected layer, "
            "which mixes all words in large sums, and an attention layer, in which every word decides whom to listen "
            "to. Move the slider and push one word of your sentence, for each layer in the direction that moves it "
            "most.",
        ),
        "The same word, the same distance: attention’s output is turned over, the fully connected layer’s hardly "
        "moves.",
        "S = largest ‖output of the changed sentence − output‖ / ‖output‖",
    ),
    Step(
        "Longer texts: one layer stops noticing",
        (
            "One word of five is a fifth of a sentence. One word of two hundred is next to nothing, and a fully "
            "connected layer sees it so: its sensitivity falls like 1/√n with the number n of words. The paper proves "
            "this (Theorem 1), and that it stays so when a few such layers are stacked (Theorem 2).",
            "Attention is different. As long as the vectors have enough coordinates for the length of the text, some "
            "push of a word moves the output by an amount that does not shrink with n (Theorem 3). Drag the length and "
            "see both curves grow as they are measured.",
        ),
        "On these axes a straight fall is a power law. The fully connected layer falls as the dotted 1/√n does; "
        "attention does not.",
    ),
    Step(
        "Why: all words can be made to look at one",
        (
            "In attention each word j has a direction u in which it is easily won: push the moving word along u, and "
            "j’s attention to it grows exponentially. Different words have different directions, but a push along "
            "their sum goes along all of them a little. In many dimensions, a little is enough.",
            "So the proof builds one push: along the sum, and a bit sideways. Most words then look at the moved word "
            "more than at all others, and the output of each becomes nearly a copy of it. Here it is built for your "
            "sentence.",
        ),
        "ReLU attention has no exponential: it cannot concentrate like this, and its sensitivity does fall with n.",
        "Δ = length · (cos θ · sum of all u, made a unit vector + sin θ · a direction across them all)",
    ),
    Step(
        "What it does to learning",
        (
            "A model has learned many texts. It is taught one more, with the label +1. Now one word of that text "
            "changes, and with it the meaning: −1 would be right. What does the model answer?",
            "Say that before the lesson the model made little of the change: its answers for the two texts differed by "
            "at most γ. Then a fully connected model cannot tell them apart afterwards either. Its squared error on "
            "the changed text is about (2 − γ)² or more, and for γ below 1 it answers wrongly (Theorems 4 and 5). A "
            "sensitive model has a way out. Drag γ.",
        ),
        "A model can only learn from a word what it is able to notice: where attention’s error lies below the dotted "
        "line, it has noticed.",
    ),
    Step(
        "Real models, layer by layer and by length",
        (
            "Random layers are where theorems can be proved. Does a trained model behave like the one or the other? "
            "Here is one on your sentence, layer by layer, and its last layer as the text grows.",
            "The search is short, so that you need not wait: the true values are these or larger.",
        ),
        "If the points stay well above the dotted line, one word still counts in a long text: for better, when it is "
        "a “not”, and for worse, when it is a typing error.",
    ),
)
