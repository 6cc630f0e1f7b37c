"""Meta-training: synthetic tasks, the smoothed objective, the trainer, the cache of its results."""
