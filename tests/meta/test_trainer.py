"""Meta-training: it learns, and it survives what is not finite."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch

from sklearn_leanclust.meta import trainer
from sklearn_leanclust.meta.settings import TrainingSettings
from sklearn_leanclust.meta.trainer import (
    CHECKPOINT,
    METRICS,
    VALIDATION_BATCHES,
    WEIGHTS,
    TrainingError,
    TrainingRun,
    batch_loss,
    learning_rate,
    sample_batch,
    train,
)
from sklearn_leanclust.network.checkpoint import load_checkpoint, load_network

CPU = torch.device("cpu")


def test_the_file_holds_the_network_and_how_it_came_about(settings, metrics, tmp_path):
    network = train(settings, tmp_path, progress=False)
    loaded, metadata = load_network(tmp_path / WEIGHTS)
    for name, value in network.state_dict().items():
        assert torch.equal(value, loaded.state_dict()[name])
    assert TrainingSettings.from_json(json.dumps(metadata["settings"])) == settings
    ratios = [line["ratio"] for line in metrics(tmp_path)]
    assert metadata["score"] == {
        "ratio_to_lloyd": ratios[-1],
        "best_ratio_to_lloyd": min(ratios),
        "skipped_updates": 0,
    }


@pytest.mark.parametrize("start", ["random", "exact"])
def test_dense_weights_learn(start, metrics, tmp_path):
    """Far beyond chance: the same 256 tasks before and after."""
    settings = TrainingSettings.dense(
        2, 3, regularizer="l2", noises=("normal",), start=start, learning_rate=0.03, n_tasks=16,
        points_per_cluster=(10, 10), n_updates=200, checkpoint_every=200,
    )  # fmt: skip
    train(settings, tmp_path, progress=False)
    first, last = metrics(tmp_path)
    if start == "random":
        assert first["ratio"] > 3
        assert last["ratio"] < 2
    else:
        assert last["ratio"] < min(first["ratio"], 1) - 0.015


def test_tied_weights_learn_to_beat_lloyds_steps(tied, metrics, tmp_path):
    settings = replace(
        tied, n_features=(2, 4), n_clusters=(4, 8), points_per_cluster=(15, 15), n_tasks=16,
        n_updates=60, checkpoint_every=60, scale=(0.4, 0.4), noises=("normal",),
    )  # fmt: skip
    train(settings, tmp_path, progress=False)
    first, last = metrics(tmp_path)
    assert last["ratio"] < min(first["ratio"], 1) - 0.002


def test_cauchy_tasks_end_with_finite_weights(settings, tmp_path):
    settings = replace(settings, noises=("cauchy",), n_updates=60)
    network = train(settings, tmp_path, progress=False)
    assert all(bool(p.isfinite().all()) for p in network.parameters())


def spoil(monkeypatch, when, how: str) -> None:
    """Make the loss, its gradient, or both not finite at some calls."""
    calls = []

    def spoiled(network, batch, settings):
        calls.append(None)
        loss = batch_loss(network, batch, settings)
        if not when(len(calls)):
            return loss
        if how == "loss":
            return loss * math.nan
        if how == "overflow":
            return loss * 1e38 * 10
        if how == "loss alone":
            return loss + math.inf
        parameter = next(network.parameters())
        zero = (parameter - parameter.detach()).sum()
        return loss + zero.abs().sqrt()  # its value is 0, its gradient is not a number

    monkeypatch.setattr(trainer, "batch_loss", spoiled)


@pytest.mark.parametrize("how", ["loss", "overflow", "loss alone", "gradient alone"])
def test_what_is_not_finite_is_skipped(settings, how, tmp_path, monkeypatch):
    run = TrainingRun(settings, CPU)
    spoil(monkeypatch, lambda call: call in (2, 3), how)
    run.advance()
    before = {name: value.clone() for name, value in run.network.state_dict().items()}
    moments = json.dumps(run.adam.state_dict(), default=lambda value: value.tolist())
    loss = run.advance()
    run.advance()
    assert math.isfinite(loss) == (how == "gradient alone")
    assert (run.skipped, run.update) == (2, 3)
    for name, value in run.network.state_dict().items():
        assert torch.equal(value, before[name])
    assert json.dumps(run.adam.state_dict(), default=lambda value: value.tolist()) == moments
    run.advance()
    assert run.skipped == 2
    assert not all(torch.equal(v, before[name]) for name, v in run.network.state_dict().items())


def test_skips_are_counted_in_the_metrics_and_over_a_resume(
    dense, train_until, metrics, tmp_path, monkeypatch
):
    spoil(monkeypatch, lambda call: call in (2, 5), "loss")
    train(replace(dense, n_updates=10), tmp_path / "whole", progress=False)
    lines = metrics(tmp_path / "whole")
    assert [line["skipped"] for line in lines] == [0, 2, 2]
    assert [line["loss"] is None for line in lines] == [True, True, False]  # strict JSON has no NaN
    spoil(monkeypatch, lambda call: call in (2, 5), "loss")
    train_until(7, replace(dense, n_updates=10), tmp_path / "broken")
    monkeypatch.undo()
    train(replace(dense, n_updates=10), tmp_path / "broken", resume=True, progress=False)
    for name in (CHECKPOINT, METRICS, WEIGHTS):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_past_the_limit_it_stops_and_says_where(dense, tmp_path, monkeypatch):
    spoil(monkeypatch, lambda call: call > 7, "loss")
    with pytest.raises(TrainingError) as caught:
        train(replace(dense, skip_limit=4), tmp_path, progress=False)
    message = str(caught.value)
    assert "5 updates" in message and "at update 12;" in message
    assert str(tmp_path / CHECKPOINT) in message and "skip_limit=4" in message
    tensors, metadata = load_checkpoint(tmp_path / CHECKPOINT)
    assert metadata["counters"]["update"] == 10
    assert all(bool(tensor.isfinite().all()) for tensor in tensors.values())
    assert not (tmp_path / WEIGHTS).exists()
    monkeypatch.undo()
    train(replace(dense, skip_limit=4), tmp_path, resume=True, progress=False)
    assert (tmp_path / WEIGHTS).exists()


def test_validation_tasks_are_always_the_same(settings):
    one = TrainingRun(settings, CPU)
    other = TrainingRun(replace(settings, seed=7, learning_rate=1.0, tau=3.0), CPU)
    other.advance()
    assert len(one.validation) == VALIDATION_BATCHES
    for a, b in zip(one.validation, other.validation, strict=True):
        assert torch.equal(a.X, b.X) and torch.equal(a.centers, b.centers)
    shapes = {batch.X.shape for batch in one.validation}
    assert len(shapes) == 1 if settings.kind == "dense" else len(shapes) > 5


def test_the_loss_does_not_depend_on_the_units_of_the_tasks(settings):
    """With Lloyd's own steps in the place of the network it is close to 1 for all tasks."""
    settings = replace(settings, tau=1e-6)
    generator = torch.Generator().manual_seed(0)
    exact = trainer.ClusteringTransformer(trainer.ExactWeights())
    for _ in range(8):
        batch = sample_batch(settings, generator)
        assert float(batch_loss(exact, batch, settings)) == pytest.approx(1, abs=1e-4)
        larger = trainer.Batch(batch.X * 8, batch.centers * 8, batch.n_steps, batch.reference * 64)
        assert batch_loss(exact, larger, settings) == batch_loss(exact, batch, settings)


def test_sizes_of_tasks_fill_their_ranges(tied):
    settings = replace(tied, n_tasks=1)
    generator = torch.Generator().manual_seed(0)
    batches = [sample_batch(settings, generator) for _ in range(300)]
    assert {batch.X.shape[2] for batch in batches} == {1, 2, 3, 4}
    assert {batch.centers.shape[1] for batch in batches} == {2, 3, 4, 5}
    assert {batch.n_steps for batch in batches} == {1, 2, 3}
    per_cluster = {batch.X.shape[1] / batch.centers.shape[1] for batch in batches}
    assert per_cluster == {4, 5, 6, 7, 8}


def test_gradients_are_clipped(settings):
    run = TrainingRun(replace(settings, clip_norm=1e-3), CPU)
    run.advance()
    norm = torch.stack([p.grad.square().sum() for p in run.network.parameters()]).sum().sqrt()
    assert float(norm) == pytest.approx(1e-3, rel=1e-2)


def test_the_learning_rate_rises_and_falls(dense):
    settings = replace(dense, n_updates=1000, learning_rate=0.2)
    rates = [learning_rate(settings, update) for update in range(1000)]
    peak = rates.index(max(rates))
    assert 40 <= peak <= 50
    assert 0.19 < rates[peak] <= 0.2
    assert rates[:peak] == sorted(rates[:peak])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert 0 < rates[-1] < 1e-5
    assert learning_rate(replace(dense, n_updates=1), 0) == dense.learning_rate


def test_progress_is_shown_if_asked_for(dense, tmp_path, capsys):
    train(dense, tmp_path / "1", progress=False)
    assert capsys.readouterr() == ("", "")
    train(dense, tmp_path / "2", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "24/24" in err and "loss=" in err and "ratio=" in err
