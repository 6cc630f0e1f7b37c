"""Settings that must stand before SciPy and PyTorch are imported."""

import os

# without it scikit-learn skips its check of array API input
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# the data of the tests are small: more threads would wait for each other most of the time
os.environ.setdefault("OMP_NUM_THREADS", "1")
