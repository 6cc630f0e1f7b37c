"""Meta-training: Adam on synthetic tasks, until a step of the network beats Lloyd's."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Generator, Tensor
from tqdm import tqdm

from sklearn_leanclust._files import write_atomically
from sklearn_leanclust.meta.objective import kmeans_objective, smoothed_objective
from sklearn_leanclust.meta.settings import TrainingSettings
from sklearn_leanclust.meta.tasks import TaskFamily, initial_centers
from sklearn_leanclust.network.checkpoint import load_checkpoint, save_checkpoint, save_network
from sklearn_leanclust.network.device import resolve_device
from sklearn_leanclust.network.points import standardise
from sklearn_leanclust.network.tied import TiedWeights
from sklearn_leanclust.network.transformer import ClusteringTransformer
from sklearn_leanclust.network.weights import DenseWeights, ExactWeights

CHECKPOINT, METRICS, WEIGHTS = "checkpoint.safetensors", "metrics.jsonl", "weights.safetensors"
VALIDATION_SEED, VALIDATION_BATCHES = 2**31 - 1, 16


class TrainingError(RuntimeError):
    """Training that cannot go on."""


@dataclass
class Batch:
    """Tasks of one size, the same number of steps for all."""

    X: Tensor  # (B, n, d), standardised
    centers: Tensor  # (B, k, d), initial
    n_steps: int
    reference: Tensor  # (B,), what as many of Lloyd's steps reach


def train(
    settings: TrainingSettings,
    out: str | Path,
    *,
    device: str | torch.device = "cpu",
    resume: bool = False,
    progress: bool = True,
) -> ClusteringTransformer:
    """Train a network and write it to ``out/weights.safetensors``.

    Parameters
    ----------
    settings : TrainingSettings
    out : path-like
        Folder for the weights, the last checkpoint and ``metrics.jsonl``; made if missing.
    device : str, default="cpu"
    resume : bool, default=False
        Go on from the checkpoint in `out`, if there is one. On the same machine the weights are
        then bit for bit those of a run without interruption.
    progress : bool, default=True
        Show a progress bar with the loss and the validation ratio to Lloyd's steps.

    Returns
    -------
    ClusteringTransformer

    Raises
    ------
    ValueError
        If `out` holds a checkpoint and `resume` is false, or the checkpoint is of other settings.
    TrainingError
        If more than ``settings.skip_limit`` updates had a loss or gradient that is not finite. The
        last good checkpoint stays.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    run = TrainingRun(settings, resolve_device(device))
    if (out / CHECKPOINT).exists():
        if not resume:
            raise ValueError(
                f"{out / CHECKPOINT} is of an earlier run; resume it, or train in another folder."
            )
        run.restore(out / CHECKPOINT)
    for partial in out.glob(".*.partial"):  # left by a process that was killed as it wrote
        partial.unlink()
    keep_metrics(out / METRICS, before=run.update)
    if run.update == 0:
        run.record(out)

    bar = tqdm(total=settings.n_updates, initial=run.update, disable=not progress, unit="update")
    with bar:
        while run.update < settings.n_updates:
            loss = run.advance()
            if run.skipped > settings.skip_limit:
                raise TrainingError(
                    f"{run.skipped} updates had a loss or gradient that is not finite, the last at "
                    f"update {run.update}; skip_limit={settings.skip_limit}. The last good "
                    f"checkpoint is {out / CHECKPOINT}; try a lower learning_rate or clip_norm."
                )
            bar.update()
            bar.set_postfix(loss=f"{loss:.4f}", ratio=f"{run.ratio:.4f}", refresh=False)
            if run.update % settings.checkpoint_every == 0 or run.update == settings.n_updates:
                run.record(out, loss)

    save_network(
        out / WEIGHTS,
        run.network,
        settings=json.loads(settings.to_json()),
        score={
            "ratio_to_lloyd": run.ratio,
            "best_ratio_to_lloyd": run.best,
            "skipped_updates": run.skipped,
        },
        recipe=settings.command(),
    )
    return run.network


class TrainingRun:
    """The state of a run: network, Adam, generator, counters."""

    COUNTERS = ("update", "skipped", "ratio", "best")

    def __init__(self, settings: TrainingSettings, device: torch.device) -> None:
        self.settings = settings
        self.generator = Generator(device).manual_seed(settings.seed)
        self.network = initial_network(settings, self.generator).to(device)
        self.adam = torch.optim.Adam(self.network.parameters())
        self.update, self.skipped, self.ratio, self.best = 0, 0, math.nan, math.inf
        validation = Generator(device).manual_seed(VALIDATION_SEED)
        self.validation = [sample_batch(settings, validation) for _ in range(VALIDATION_BATCHES)]

    def advance(self) -> float:
        """Make one update, or skip it where the loss or the gradient is not finite."""
        settings = self.settings
        batch = sample_batch(settings, self.generator)
        self.adam.zero_grad()
        loss = batch_loss(self.network, batch, settings)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), settings.clip_norm)
        loss = float(loss.detach())
        if math.isfinite(loss) and math.isfinite(float(norm)):
            for group in self.adam.param_groups:
                group["lr"] = learning_rate(settings, self.update)
            self.adam.step()
        else:
            self.skipped += 1
        self.update += 1
        return loss

    def record(self, out: Path, loss: float = math.nan) -> None:
        """Validate, write a line of metrics and a checkpoint."""
        self.ratio = validation_ratio(self.network, self.validation)
        self.best = min(self.best, self.ratio)
        line = {"update": self.update, "loss": loss, "ratio": self.ratio, "skipped": self.skipped}
        with open(out / METRICS, "a") as file:
            file.write(json.dumps({k: v if math.isfinite(v) else None for k, v in line.items()}))
            file.write("\n")
        state = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        for index, values in self.adam.state_dict()["state"].items():
            state |= {f"adam.{index}.{name}": value for name, value in values.items()}
        state["generator"] = self.generator.get_state()
        about = {
            "settings": json.loads(self.settings.to_json()),
            "device": self.generator.device.type,
            "counters": {name: getattr(self, name) for name in self.COUNTERS},
        }
        save_checkpoint(out / CHECKPOINT, state, about)

    def restore(self, path: Path) -> None:
        """Take up the state of a checkpoint."""
        state, about = load_checkpoint(path)
        if "counters" not in about:
            raise ValueError(f"{path} is not the checkpoint of a training run.")
        ours, theirs = json.loads(self.settings.to_json()), about["settings"]
        differing = sorted(name for name in ours | theirs if ours.get(name) != theirs.get(name))
        if differing:
            raise ValueError(
                f"{path} is of a run with other values of {', '.join(differing)}; resume it with "
                "those, or train in another folder."
            )
        if about["device"] != self.generator.device.type:
            raise ValueError(
                f"{path} is of a run with device={about['device']!r}; resume it there."
            )
        self.network.load_state_dict(
            {name.removeprefix("network."): v for name, v in state.items() if "network." in name}
        )
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in state.items():
            if name.startswith("adam."):
                _, index, key = name.split(".")
                moments.setdefault(int(index), {})[key] = value
        groups = self.adam.state_dict()["param_groups"]
        self.adam.load_state_dict({"state": moments, "param_groups": groups})
        self.generator.set_state(state["generator"])
        for name in self.COUNTERS:
            setattr(self, name, about["counters"][name])


def initial_network(settings: TrainingSettings, generator: Generator) -> ClusteringTransformer:
    """Network before the first update."""
    if settings.kind == "tied":
        return ClusteringTransformer(TiedWeights(settings.n_knots), settings.embedding)
    weights = DenseWeights(settings.n_features[0], settings.n_clusters[0], settings.embedding).to(
        generator.device
    )
    if settings.start == "exact":
        weights.set_exact(settings.sharpness)
    else:
        weights.set_random(generator)
    return ClusteringTransformer(weights, settings.embedding)


def learning_rate(settings: TrainingSettings, update: int) -> float:
    """Linear rise over the first 5 % of the updates, then a cosine down to 0."""
    share = update / settings.n_updates
    rise = min(1.0, (update + 1) / max(1.0, 0.05 * settings.n_updates))
    return settings.learning_rate * rise * (1 + math.cos(math.pi * share)) / 2


def sample_batch(settings: TrainingSettings, generator: Generator) -> Batch:
    """Draw the tasks of one update, their initial centres and what Lloyd's steps make of them."""
    draws = draw_numbers(generator)
    k = log_uniform(settings.n_clusters, next(draws))
    family = TaskFamily(
        noise=settings.noises[int(next(draws) * len(settings.noises))],
        scale=settings.scale[0] + next(draws) * (settings.scale[1] - settings.scale[0]),
        n_features=log_uniform(settings.n_features, next(draws)),
        n_clusters=k,
        n_samples=k * log_uniform(settings.points_per_cluster, next(draws)),
    )
    X, _, _ = standardise(family.sample(settings.n_tasks, generator))
    centers = initial_centers(X, k, settings.init, generator)
    n_steps = log_uniform(settings.n_steps, next(draws))
    with torch.no_grad():
        lloyd = run_steps(ClusteringTransformer(ExactWeights()), X, centers, n_steps)
        reference = kmeans_objective(X, lloyd)
    return Batch(X, centers, n_steps, reference)


def draw_numbers(generator: Generator) -> Iterator[float]:
    """Uniform numbers in [0, 1)."""
    while True:
        yield float(torch.rand((), generator=generator, device=generator.device))


def log_uniform(bounds: tuple[int, int], draw: float) -> int:
    """Whole number between the bounds, uniform on the logarithmic scale."""
    low, high = bounds
    return min(high, int(low * ((high + 1) / low) ** draw))


def run_steps(network: ClusteringTransformer, X: Tensor, centers: Tensor, n_steps: int) -> Tensor:
    """Centres (B, k, d) after steps from fresh tokens."""
    for t in range(n_steps):
        centers = network(X, centers, progress=t / max(1, n_steps - 1))
    return centers


def batch_loss(network: ClusteringTransformer, batch: Batch, settings: TrainingSettings) -> Tensor:
    """Mean smoothed objective, over what Lloyd's steps reach on each task."""
    centers = run_steps(network, batch.X, batch.centers, batch.n_steps)
    n_features = batch.X.shape[-1]
    unit = (batch.reference / n_features).sqrt()[:, None, None]
    objective = smoothed_objective(
        batch.X / unit, centers / unit, settings.tau, settings.regularizer
    )
    return objective.mean() / n_features


@torch.no_grad()
def validation_ratio(network: ClusteringTransformer, batches: list[Batch]) -> float:
    """Median over tasks of the true objective over that of as many of Lloyd's steps."""
    ratios = [
        kmeans_objective(b.X, run_steps(network, b.X, b.centers, b.n_steps)) / b.reference
        for b in batches
    ]
    return float(torch.cat(ratios).median())


def keep_metrics(path: Path, before: int) -> None:
    """Drop the lines of metrics after the update that training goes on from."""
    if not path.exists():
        return
    lines = [line for line in path.read_text().splitlines() if line.endswith("}")]
    kept = [line for line in lines if before > 0 and json.loads(line)["update"] <= before]
    with write_atomically(path) as file:
        file.write("".join(f"{line}\n" for line in kept).encode())
