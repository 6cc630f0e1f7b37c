"""The package as a whole: layers, imports, metadata, README."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

import sklearn_leanclust

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "sklearn_leanclust"
MODULES = sorted(PACKAGE.rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# Which layers each layer may import, itself aside: network <- meta <- experiments and
# network <- estimators <- commands. `root` is __init__.py and writing of files.
LAYERS = {
    "root": set(),
    "network": {"root"},
    "meta": {"root", "network"},
    "estimators": {"root", "network", "meta"},
    "plotting": set(),
    "experiments": {"root", "network", "meta", "estimators", "plotting"},
    "commands": {"root", "network", "meta", "estimators", "plotting", "experiments"},
    "__main__": {"commands"},
}
MODULE_OF_DISTRIBUTION = {"scikit-learn": "sklearn"}


def layer(module: str) -> str:
    """Layer of a module of the package, given its full name."""
    parts = module.split(".")
    if len(parts) == 1 or parts[1] == "_files":
        return "root"
    return "estimators" if re.match(r"_[a-z]", parts[1]) else parts[1]


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Full names of all that a file imports, at the top or anywhere else in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield node.module
            if node.module == "sklearn_leanclust":  # submodules as well as public names
                yield from (f"{node.module}.{alias.name}" for alias in node.names
                            if (PACKAGE / alias.name).is_dir()
                            or (PACKAGE / f"{alias.name}.py").is_file())  # fmt: skip


@pytest.mark.parametrize("path", [m for m in MODULES if m != PACKAGE / "__init__.py"], ids=name_of)
def test_imports_run_one_way(path):
    own = layer(name_of(path))
    used = {layer(name) for name in imports(path) if name.split(".")[0] == "sklearn_leanclust"}
    assert used <= LAYERS[own] | {own}


def test_the_network_is_torch_only():
    files = sorted((PACKAGE / "network").rglob("*.py"))
    used = {name.split(".")[0] for path in files for name in imports(path)}
    known = sys.stdlib_module_names | {"torch", "numpy", "safetensors", "sklearn_leanclust"}
    assert files
    assert used <= known


def test_importing_the_package_is_light():
    heavy = "{'torch', 'pandas', 'matplotlib', 'sklearn', 'numpy'}"
    script = f"import sys, sklearn_leanclust; print(*{heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"


def test_importing_the_estimators_does_not_import_torch():
    script = """
import sys
from sklearn_leanclust import LloydStep, TransformerKMeans
LloydStep(1).fit([[0.0], [1.0]])
print(*{"torch", "matplotlib"} & set(sys.modules))  # pandas is scikit-learn's own choice
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"


def test_public_names():
    assert set(dir(sklearn_leanclust)) == set(sklearn_leanclust.__all__)
    for name in sklearn_leanclust.__all__:
        assert getattr(sklearn_leanclust, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'KMeans'"):
        sklearn_leanclust.KMeans  # noqa: B018


def test_version_is_that_of_the_metadata():
    assert sklearn_leanclust.__version__ == version("sklearn_leanclust")


def names(requirements: list[str]) -> set[str]:
    """Names of distributions in requirements."""
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def modules(requirements: list[str]) -> set[str]:
    """Modules of the distributions in requirements."""
    return {MODULE_OF_DISTRIBUTION.get(name, name) for name in names(requirements)}


def test_what_is_imported_is_declared():
    extras = PROJECT["optional-dependencies"]
    used = {name.split(".")[0] for path in MODULES for name in imports(path)}
    used -= sys.stdlib_module_names | {"sklearn_leanclust"}
    assert modules(PROJECT["dependencies"]) <= used
    assert used <= modules(PROJECT["dependencies"]) | modules(extras["cli"])


def test_tested_versions_cover_the_direct_dependencies():
    extras = PROJECT["optional-dependencies"]
    direct = names(PROJECT["dependencies"] + extras["cli"] + extras["test"])
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert all("==" in line for line in pinned)
    assert names(pinned) == direct - {"sklearn_leanclust"}


def test_the_readme_has_the_two_commands_that_ci_runs():
    commands = re.findall(r"^python3 -m venv .*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(commands) == 2
    assert "sklearn_leanclust fit examples/wine.csv" in commands[0]
    assert commands[1].endswith("-m pytest")


def test_the_example_of_the_readme_runs(capsys):
    (example,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    exec(compile(example, "README.md", "exec"), {})
    inertia, shape = capsys.readouterr().out.split(maxsplit=1)
    assert float(inertia) == pytest.approx(1277.93, rel=1e-4)
    assert shape.strip() == "(3, 13)"
