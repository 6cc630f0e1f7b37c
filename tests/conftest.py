"""Settings that must stand before SciPy is imported."""

import os

# without it scikit-learn skips its check of array API input
os.environ.setdefault("SCIPY_ARRAY_API", "1")
