"""Controls of a training: what they add to the loss, or do to the texts, to raise or lower word sensitivity."""
