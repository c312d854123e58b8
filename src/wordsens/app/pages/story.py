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
        "The same word goes the same distance, for each layer in the direction that moves it most: attention’s output "
        "moves much farther than the fully connected layer’s.",
        "S = largest ‖output of the changed sentence − output‖ / ‖output‖",
    ),
    Step(
        "Longer texts: one layer stops noticing",
        (
            "One word of five is a fifth of a sentence. One word of two hundred is next to nothing, and a fully "
            "connected layer sees it so: its sensitivity falls like 1/√n with the number n of words. The paper proves "
            "this (Theorem 1), and that it stays so when a few such layers are stacked (Theorem 2).",
            "Attention is different. As long as the vectors have enough coordinates for the length of the text, some "
            "push of a word moves the output by an amount that does not shrink with n (Theorem 3). Choose a length, "
            "press, and see both curves grow as they are measured.",
        ),
        "On these axes a straight fall is a power law: compare slopes, not heights. The fully connected layer falls "
        "as steeply as the dotted 1/√n; attention does not.",
    ),
    Step(
        "Why: all words can be made to look at one",
        (
            "In attention each word j has a direction u in which it is easily won: push the moving word along u, and "
            "j’s attention to it grows exponentially. Different words have different directions, but a push along "
            "their sum goes along all of them a little. In many dimensions, a little is enough.",
            "So the proof builds one push: partly along that sum, and partly at a right angle to it (the angle θ "
            "says how much of each), so that the word itself becomes another. Most words then look at the moved word "
            "more than at all others, and the output of each becomes nearly a copy of it. Here it is built for your "
            "sentence. It is not the farthest push there is: a search finds more.",
        ),
        "ReLU attention has no exponential: it cannot concentrate like this, and its sensitivity does fall with n.",
        "Δ = length · (cos θ · (sum of all u, as a unit vector) + sin θ · (a unit vector at a right angle to all u))",
    ),
    Step(
        "What it does to learning",
        (
            "A model has learned many texts. It is taught one more, with the label +1. Now one word of that text "
            "changes, and with it the meaning: −1 would be right. What does the model answer?",
            "Call γ how far the model’s answers for the two texts were apart before the lesson. If that was little, a "
            "fully connected model cannot tell them apart afterwards either: in long texts its squared error on the "
            "changed text is (2 − γ)² or more, and for γ below 1 it gives the wrong label (Theorems 4 and 5). A "
            "sensitive model can do better. Drag γ.",
        ),
        "A model can only learn from a word what it is able to notice. An error below 1 is the right label: attention "
        "gets there with a small γ, the fully connected layer does not.",
    ),
    Step(
        "Real models, layer by layer and by length",
        (
            "Random layers are where theorems can be proved. Does a trained model behave like the one or the other? "
            "Here is one on your sentence, layer by layer, and its last layer as the text grows.",
            "The search is short, so that you need not wait: the true values are these or larger.",
        ),
        "If the points fall more slowly than the dotted line, one word still counts in a long text: for better, when "
        "it is a “not”, and for worse, when it is a typing error.",
    ),
)
