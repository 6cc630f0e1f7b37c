"""What the results of the benchmark come to: CSV tables, a page in Markdown and a figure.

Best known is the lowest inertia that any method with any seed reached on a data set. All other
numbers are medians over the seeds; means over data sets are geometric ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sklearn_leanclust.experiments.benchmark import MACHINE, Result
from sklearn_leanclust.experiments.datasets import SIZE_CLASSES, DataSet
from sklearn_leanclust.experiments.methods import BASELINE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOLERANCE = 1.002  # inertia over that of the baseline from which a set counts as worse
FLOOR = 1e-5  # lowest excess that the logarithmic axis of the figure shows

NOTES = f"""\
- `inertia`: sum of squared distances, worked out in float64 from the centres alone, over the best
  known of the data set; median over the seeds.
- `speed`: time of `{BASELINE}` over that of the method. Each method has a process of its own, where
  it clusters a tiny problem first, so imports and first calls are not in the times; the data lie in
  memory. Below 2,000 points each time is the median of repeated fits.
- `memory`: largest growth of the process during a fit, in MiB.
- `worse`: number of sets with an inertia above {TOLERANCE} times that of `{BASELINE}`.
"""


def write_report(rows: Sequence[Result], datasets: Mapping[str, DataSet], out: Path) -> None:
    """Write ``sets.csv``, ``summary.csv``, ``report.md`` and ``report.png``.

    Parameters
    ----------
    rows : sequence of Result
    datasets : mapping
        By name; rows of others are left out.
    out : Path
        Folder of the results.
    """
    rows = [row for row in rows if row.dataset in datasets]
    good = [row for row in rows if not row.error]
    sets = per_set(good, datasets)
    summary = per_method(sets)
    sets.to_csv(out / "sets.csv", index=False)
    summary.to_csv(out / "summary.csv")
    machine = json.loads((out / MACHINE).read_text(encoding="utf-8"))
    page = "\n".join(markdown(rows, sets, summary, machine))
    (out / "report.md").write_text(page, encoding="utf-8")
    draw(sets).savefig(out / "report.png", dpi=150)


def per_set(rows: Sequence[Result], datasets: Mapping[str, DataSet]) -> pd.DataFrame:
    """One row for each data set and method.

    Parameters
    ----------
    rows : sequence of Result
        Without errors.
    datasets : mapping
        By name; its order is kept.

    Returns
    -------
    DataFrame
        Columns dataset, size, n, d, k, method, seeds, inertia, ratio (to the best known), against
        (ratio to the baseline), seconds, speed (of the baseline's time), memory.
    """
    table = pd.DataFrame(rows, columns=list(Result.__dataclass_fields__))
    sets = (
        table.groupby(["dataset", "method"], sort=False)
        .agg(seeds=("seed", "count"), inertia=("inertia", "median"), lowest=("inertia", "min"),
             seconds=("seconds", "median"), memory=("peak_mib", "max"))
        .reset_index()
    )  # fmt: skip
    sets["ratio"] = sets.inertia / sets.groupby("dataset").lowest.transform("min")
    baseline = sets[sets.method == BASELINE].set_index("dataset")
    sets["against"] = sets.inertia / sets.dataset.map(baseline.inertia)
    sets["speed"] = sets.dataset.map(baseline.seconds) / sets.seconds
    for name in ("size", "n", "d", "k"):
        sets[name] = [getattr(datasets[dataset], name) for dataset in sets.dataset]
    order = {name: i for i, name in enumerate(datasets)}
    sets = sets.sort_values("dataset", key=lambda names: names.map(order), kind="stable")
    columns = ["dataset", "size", "n", "d", "k", "method", "seeds", "inertia", "ratio", "against",
               "seconds", "speed", "memory"]  # fmt: skip
    return sets[columns].reset_index(drop=True)


def per_method(sets: pd.DataFrame) -> pd.DataFrame:
    """One row for each method, in the order of :func:`per_set`.

    Returns
    -------
    DataFrame
        Index method; columns sets, seeds (fewest on a set), inertia (geometric mean), worst, worst
        set, worse (number of sets), memory, and for each class of sizes the geometric mean and the
        lowest speed.
    """
    summary = {}
    for method, own in sets.groupby("method", sort=False):
        worst = own.ratio.idxmax()
        line = {
            "sets": len(own),
            "seeds": own.seeds.min(),
            "inertia": geometric_mean(own.ratio),
            "worst": own.ratio[worst],
            "worst set": own.dataset[worst],
            "worse": int((own.against > TOLERANCE).sum()),
            "memory": own.memory.max(),
        }
        for size in SIZE_CLASSES:
            speed = own.speed[own["size"] == size]
            line[f"speed {size}"], line[f"min {size}"] = geometric_mean(speed), speed.min()
        summary[method] = line
    return pd.DataFrame.from_dict(summary, orient="index").rename_axis("method")


def geometric_mean(values: pd.Series) -> float:
    """Geometric mean, NaN of nothing."""
    return float(np.exp(np.log(values).mean()))


def markdown(
    rows: Sequence[Result],
    sets: pd.DataFrame,
    summary: pd.DataFrame,
    machine: Mapping[str, str | int],
) -> Iterator[str]:
    """Lines of the page."""
    yield from ("# Benchmark", "", NOTES)
    yield from ("![Inertia over the best known, against speed](report.png)", "", "## Methods", "")
    yield from table(summary.transform(lambda column: column.map(FORMATS.get(column.name, str))))
    yield from ("", f"Sizes: {'; '.join(f'{size}: {n}' for size, n in SIZE_CLASSES.items())}.", "")
    failed = {(row.dataset, row.method): row.error for row in rows if row.error}
    for method in summary.index:
        worse = sets.dataset[(sets.method == method) & (sets.against > TOLERANCE)]
        if len(worse):
            yield f"- `{method}` is worse than `{BASELINE}` on {', '.join(worse)}"
    for (dataset, method), error in failed.items():
        yield f"- `{method}` failed on {dataset}: {error}"
    titles = {
        "inertia": "Inertia over the best known",
        "speed": f"Time of `{BASELINE}` over that of the method",
        "seconds": "Seconds",
        "memory": "Memory in MiB",
    }
    for name, title in titles.items():
        yield from ("", f"## {title}", "")
        column = "ratio" if name == "inertia" else name
        wide = sets.pivot(index=["dataset", "n", "d", "k"], columns="method", values=column)
        wide = wide.loc[sets.dataset.unique(), summary.index].map(FORMATS[name]).reset_index()
        for dataset, method in failed:
            if method in wide:
                gap = (wide.dataset == dataset) & (wide[method] == "")
                wide.loc[gap, method] = "failed"
        yield from table(wide.set_index("dataset"))
    versions = {row.method: row.version for row in rows}
    yield from ("", "## Versions and machine", "")
    yield from (f"- {name}: {value}" for name, value in (machine | versions).items())
    yield ""


def rounded(style: str) -> Callable[[float], str]:
    """Formatter of numbers; NaN becomes empty."""
    return lambda value: "" if np.isnan(value) else format(value, style)


FORMATS = {"inertia": rounded(".4f"), "worst": rounded(".4f"), "memory": rounded(".0f"),
           "seconds": rounded(".3g"), "speed": rounded(".3g")}  # fmt: skip
FORMATS |= {f"{name} {size}": rounded(".3g") for size in SIZE_CLASSES for name in ("speed", "min")}


def table(frame: pd.DataFrame) -> Iterator[str]:
    """Lines of a Markdown table, the index as first column."""
    yield f"| {' | '.join([frame.index.name, *frame.columns])} |"
    yield f"|{'---|' * (1 + len(frame.columns))}"
    for values in frame.itertuples():
        yield f"| {' | '.join(map(str, values))} |"


def draw(sets: pd.DataFrame) -> Figure:
    """Draw inertia above the best known against speed, one panel for each class of sizes.

    Small marks are data sets, large ones the geometric mean of a method. Sets without the baseline
    have no speed, and are not shown.

    Returns
    -------
    matplotlib Figure
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    sets = sets.dropna(subset="speed")
    methods = sets.method.unique()
    colors = dict(zip(methods, colormaps["tab20"](np.arange(len(methods))), strict=True))
    figure = Figure(figsize=(13, 5), layout="constrained")
    panels = figure.subplots(1, len(SIZE_CLASSES), sharex=True, sharey=True)
    for ax, (size, text) in zip(panels, SIZE_CLASSES.items(), strict=True):
        for method, own in sets[sets["size"] == size].groupby("method", sort=False):
            color = [colors[method]]
            ax.scatter(own.speed, (own.ratio - 1).clip(FLOOR), s=12, c=color, alpha=0.5)
            excess = max(geometric_mean(own.ratio) - 1, FLOOR)
            ax.scatter(
                geometric_mean(own.speed), excess, s=110, c=color, edgecolors="black", zorder=3
            )
        ax.axvline(1, color="grey", linewidth=0.8)
        ax.set(xscale="log", yscale="log", title=f"{size}: {text}")
        ax.set(xlabel=f"time of {BASELINE} / time")
        ax.grid(alpha=0.3)
    panels[0].set_ylabel("inertia / best known − 1")
    handles = [Line2D([], [], marker="o", linestyle="", color=color) for color in colors.values()]
    figure.legend(handles, methods, loc="outside right center", frameon=False)
    return figure
