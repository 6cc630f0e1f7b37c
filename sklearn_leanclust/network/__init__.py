"""The clustering layer in PyTorch: tokens, attention, weights. Knows nothing of scikit-learn."""

EMBEDDINGS = ("binary", "onehot", "none")
