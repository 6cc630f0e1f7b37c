"""Checkpoints: what is written comes back, and what is not sound is refused."""

from __future__ import annotations

import json
import os
import pickle
import struct
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from sklearn_leanclust import __version__
from sklearn_leanclust.network.checkpoint import (
    FORMAT_VERSION,
    KEY,
    MAX_FILE,
    MAX_HEADER,
    CheckpointError,
    canonical,
    content_hash,
    load_checkpoint,
    load_network,
    save_checkpoint,
    save_network,
)
from sklearn_leanclust.network.tied import TiedWeights
from sklearn_leanclust.network.transformer import ClusteringTransformer
from sklearn_leanclust.network.weights import DenseWeights, ExactWeights

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "step": torch.tensor(7)}
METADATA = {"settings": {"tau": 0.1, "noises": ("normal", "laplace")}, "recipe": "train --tau 0.1"}


def tied() -> ClusteringTransformer:
    """A tied network with values of its own."""
    network = ClusteringTransformer(TiedWeights(n_knots=3), "onehot")
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += torch.rand(parameter.shape, generator=generator)
    return network


def dense(embedding: str = "binary") -> ClusteringTransformer:
    generator = torch.Generator().manual_seed(1)
    return ClusteringTransformer(DenseWeights(2, 5, embedding).set_random(generator), embedding)


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> bytes:
    """Bytes of a sound file with a network."""
    path = tmp_path_factory.mktemp("sound") / "w.safetensors"
    save_network(path, tied(), settings={"tau": 0.1}, score={"ratio": 0.9}, recipe="train")
    return path.read_bytes()


@pytest.fixture(scope="module")
def refusal(tmp_path_factory):
    """Write bytes to a file that must be refused in one sentence; return the sentence."""
    path = tmp_path_factory.mktemp("refused") / "some file.safetensors"

    def refused(data: bytes) -> str:
        path.write_bytes(data)
        with pytest.raises(CheckpointError) as caught:
            load_checkpoint(path)
        message = str(caught.value)
        assert message.startswith(f"{path} ")
        assert message.endswith(".") and ". " not in message and "\n" not in message
        return message.removeprefix(f"{path} ")

    return refused


def description(**about) -> dict:
    """Metadata of a network."""
    return {"network": about, "settings": {}, "score": {}}


def with_header(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def signed(record: dict, tensors: dict[str, torch.Tensor]) -> bytes:
    """A file whose hash is right, whatever it says."""
    record = record | {"sha256": content_hash(tensors, record)}
    return save(tensors, metadata={KEY: canonical(record)})


# what is written comes back


def test_round_trip(tmp_path):
    tensors = TENSORS | {
        "flag": torch.tensor(True),
        "empty": torch.empty(0, 3),
        "double": torch.rand(2, dtype=torch.float64),
        "half": torch.rand(3, 2).bfloat16().T,
        "generator": torch.Generator().get_state(),
        "view": TENSORS["a"][0],  # shares memory with another one
    }
    save_checkpoint(tmp_path / "c", tensors, METADATA | {"text": "é\n\ud800", "nan": float("nan")})
    loaded, metadata = load_checkpoint(tmp_path / "c")
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert torch.equal(loaded[name], tensor)
    assert metadata["settings"] == {"tau": 0.1, "noises": ["normal", "laplace"]}
    assert metadata["text"] == "é\n\ud800"
    assert metadata["package_version"] == __version__
    assert metadata["format_version"] == FORMAT_VERSION


def test_the_same_content_gives_the_same_bytes(tmp_path):
    save_checkpoint(tmp_path / "a", TENSORS, METADATA)
    save_checkpoint(
        tmp_path / "b", dict(reversed(TENSORS.items())), dict(reversed(METADATA.items()))
    )
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    save_checkpoint(tmp_path / "b", *load_checkpoint(tmp_path / "a"))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("metadata", [{"a": {1}}, {"a": b"x"}, {"a": torch.ones(1)}])
def test_metadata_that_json_lacks_are_refused(metadata, tmp_path):
    with pytest.raises(ValueError, match="metadata cannot be written as JSON"):
        save_checkpoint(tmp_path / "c", TENSORS, metadata)
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_that_could_not_be_read(tmp_path):
    with pytest.raises(ValueError, match=f"{MAX_HEADER} of them for the metadata"):
        save_checkpoint(tmp_path / "c", TENSORS, {"text": "x" * MAX_HEADER})
    assert not list(tmp_path.iterdir())


# writing is whole or not at all


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupted_write_leaves_what_was_there(function, error, tmp_path, monkeypatch):
    path = tmp_path / "c"
    save_checkpoint(path, TENSORS, METADATA)
    before = path.read_bytes()

    def fail(*args):
        raise error

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(error if isinstance(error, type) else OSError):
        save_checkpoint(path, {}, {})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_files_have_the_mode_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        save_checkpoint(tmp_path / "c", TENSORS, METADATA)
    finally:
        os.umask(before)
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o640


# what is not sound is refused


def test_every_truncation_is_refused(sound, refusal):
    for end in {len(sound) * part // 16 for part in range(16)} | set(range(0, len(sound), 7)):
        refusal(sound[:end])
    refusal(sound + b"\0")


def test_every_flipped_byte_is_refused(sound, refusal):
    for place in range(len(sound)):
        refusal(sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :])


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_flipped_bits_are_refused(sound, refusal, data):
    altered = bytearray(sound)
    for place in data.draw(st.sets(st.integers(0, 8 * len(sound) - 1), min_size=1, max_size=4)):
        altered[place // 8] ^= 1 << place % 8
    refusal(bytes(altered))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
ENTRY = st.fixed_dictionaries(
    {}, optional={"dtype": st.sampled_from(["F32", "I4"]) | JSON, "shape": JSON,
                  "data_offsets": st.lists(st.integers(-1, 2**65), max_size=3) | JSON}
)  # fmt: skip
RECORD = st.fixed_dictionaries(
    {}, optional={"format_version": st.just(1) | JSON, "sha256": JSON, "package_version": JSON}
)


@settings(max_examples=150, deadline=None)
@given(
    record=(RECORD | JSON).map(json.dumps) | st.text(),
    entries=st.dictionaries(st.text(max_size=3), ENTRY | JSON, max_size=3),
    body=st.binary(max_size=20),
)
def test_made_up_headers_are_refused(refusal, record, entries, body):
    refusal(with_header({"__metadata__": {KEY: record}} | entries, body))


@settings(max_examples=200, deadline=None)
@given(data=st.binary() | st.binary().map(lambda text: with_header(text)))
@example(with_header(b"[" * MAX_HEADER))
@example(with_header(b'{"__metadata__":' * 60_000))
@example(with_header({"__metadata__": {KEY: "[" * 100_000}}))
@example(with_header({"__metadata__": {KEY: '{"format_version":' + "9" * 10_000 + "}"}}))
@example(with_header({"__metadata__": 3}))
@example(with_header([1, 2]))
def test_made_up_bytes_are_refused(refusal, data):
    refusal(data)


def test_other_files_are_named_as_such(refusal):
    assert "not a safetensors file" in refusal(b"")
    assert "not a safetensors file" in refusal(Path(__file__).read_bytes())
    assert refusal(save(TENSORS)) == f"is not a checkpoint of {KEY}."
    assert refusal(save(TENSORS, metadata={"format": "pt"})) == f"is not a checkpoint of {KEY}."


def test_pickles_are_refused_and_not_run(refusal, tmp_path):
    class Touch:
        def __reduce__(self):
            return Path.touch, (tmp_path / "run",)

    refusal(pickle.dumps(Touch()))
    torch.save(Touch(), tmp_path / "saved")
    refusal((tmp_path / "saved").read_bytes())
    assert not (tmp_path / "run").exists()


def test_newer_formats_are_named(refusal):
    record = {"format_version": FORMAT_VERSION + 1, "package_version": "9.0"}
    assert refusal(signed(record, TENSORS)) == (
        f"has format {FORMAT_VERSION + 1} of {KEY} '9.0', newer than format {FORMAT_VERSION} that "
        "this version reads."
    )


def test_altered_values_are_found_by_the_hash(refusal):
    record = {"format_version": FORMAT_VERSION, "sha256": content_hash(TENSORS, {})}
    data = save(TENSORS, metadata={KEY: canonical(record)})
    assert refusal(data) == "was altered: its content does not match its hash."


@pytest.fixture
def tight_memory():
    """64 MiB of address space beyond what the process has."""
    resource, statm = pytest.importorskip("resource"), Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("address space is known from /proc only")
    pages = int(statm.read_text().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + 2**26
    resource.setrlimit(resource.RLIMIT_AS, (limit, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def test_huge_sizes_take_no_memory(refusal, tmp_path, tight_memory):
    with pytest.raises(MemoryError):  # the limit is in force
        bytes(2**27)
    good = {KEY: canonical({"format_version": 1, "package_version": "1", "sha256": ""})}
    for length in (2**63, 2**64 - 1, 2**40, MAX_HEADER + 1):
        refusal(struct.pack("<Q", length) + b"{}")
    for shape, end in [([2**40], 2**42), ([0, 2**62], 0), ([2**62, 4], 0), ([2**31, 2**31], 16)]:
        entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}
        refusal(with_header({"__metadata__": good, "a": entry}, b"\0" * 16))
    with open(tmp_path / "sparse", "wb") as file:
        file.write(struct.pack("<Q", 8))
        file.truncate(MAX_FILE + 1)
    with pytest.raises(CheckpointError, match="more than any checkpoint"):
        load_checkpoint(tmp_path / "sparse")


def test_a_huge_network_takes_no_memory(tmp_path, tight_memory):
    about = {"kind": "dense", "embedding": "binary", "dtype": "float32", "hard": False}
    for d, k in [(10**6, 8), (10**12, 8), (2**70, 8), (4, 2**70)]:
        metadata = description(**about, n_features=d, n_clusters=k)
        save_checkpoint(tmp_path / "c", TENSORS, metadata)
        with pytest.raises(CheckpointError, match="do not fit|does not know"):
            load_network(tmp_path / "c")


def test_folders_pipes_and_missing_files(tmp_path):
    places = [tmp_path]
    if hasattr(os, "mkfifo"):
        places.append(tmp_path / "pipe")
        os.mkfifo(places[-1])
    for path in places:
        with pytest.raises(CheckpointError, match=f"{path} is not a file"):
            load_checkpoint(path)
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "nowhere")


# networks


@pytest.mark.parametrize(
    "network", [tied(), dense(), dense("onehot"), dense("none")],
    ids=["tied", "dense-binary", "dense-onehot", "dense-none"],
)  # fmt: skip
def test_networks_come_back(network, tmp_path):
    path = tmp_path / "w"
    save_network(path, network, settings={"tau": 0.1}, score={"ratio": 0.9}, recipe="train")
    loaded, metadata = load_network(path)
    X, centers = torch.randn(3, 40, 2), torch.randn(3, 5, 2)
    for progress in (0.0, 0.4, 1.0):
        assert torch.equal(
            loaded(X, centers, progress=progress), network(X, centers, progress=progress)
        )
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    assert metadata["settings"] == {"tau": 0.1}
    assert metadata["score"] == {"ratio": 0.9}
    assert metadata["recipe"] == "train"
    assert metadata["network"]["embedding"] == network.embedding
    save_network(tmp_path / "again", loaded, settings={"tau": 0.1}, score={"ratio": 0.9},
                 recipe="train")  # fmt: skip
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_the_callers_default_dtype_and_device_do_not_matter(sound, tmp_path):
    (tmp_path / "w").write_bytes(sound)
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        loaded, _ = load_network(tmp_path / "w")
        save_network(tmp_path / "again", loaded, settings={"tau": 0.1}, score={"ratio": 0.9},
                     recipe="train")  # fmt: skip
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)
    assert {(p.dtype, p.device.type) for p in loaded.parameters()} == {(torch.float32, "cpu")}
    assert (tmp_path / "again").read_bytes() == sound


def test_double_precision_is_stored_as_single(tmp_path):
    save_network(tmp_path / "w", tied().double(), settings={}, score={})
    expected = tied().state_dict()
    for name, value in load_network(tmp_path / "w")[0].state_dict().items():
        assert torch.equal(value, expected[name])


def test_what_was_not_learned_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="ExactWeights holds nothing that was learned"):
        save_network(tmp_path / "w", ClusteringTransformer(ExactWeights()), settings={}, score={})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_weights_that_are_not_finite_are_not_saved(value, tmp_path):
    network = tied().double()
    with torch.no_grad():
        next(network.parameters())[0] = value
    with pytest.raises(ValueError, match="not finite"):
        save_network(tmp_path / "w", network, settings={}, score={})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "quantum"}, "does not know"),
        ({"kind": ["tied"]}, "does not know"),
        ({"embedding": "ternary"}, "does not know"),
        ({"embedding": {}}, "does not know"),
        ({"embedding": "none"}, "does not know"),  # which tied weights cannot have
        ({"dtype": "float64"}, "does not know"),
        ({"n_knots": "3"}, "does not know"),
        ({"n_knots": 0}, "does not know"),
        ({"n_knots": -1}, "does not know"),
        ({"n_knots": [3]}, "does not know"),
        ({"n_knots": True}, "does not know"),
        ({"n_knots": 4}, "do not fit"),
        ({"kind": "dense"}, "does not know"),  # without its sizes
        ({"kind": "dense", "n_features": 2, "n_clusters": 5, "hard": False}, "do not fit"),
    ],
)
def test_unknown_networks_are_refused(change, reason, tmp_path):
    about = {"kind": "tied", "embedding": "onehot", "dtype": "float32", "n_knots": 3}
    path = tmp_path / "w"
    save_checkpoint(path, tied().state_dict(), description(**about))
    load_network(path)
    save_checkpoint(path, tied().state_dict(), description(**about | change))
    with pytest.raises(CheckpointError, match=reason) as caught:
        load_network(path)
    assert str(caught.value).startswith(f"{path} ")


def test_tensors_that_do_not_fit_are_refused(tmp_path):
    about = {"kind": "tied", "embedding": "onehot", "dtype": "float32", "n_knots": 3}
    state = dict(tied().state_dict())
    first = next(iter(state))
    cases = {
        "do not fit": [
            {name: value for name, value in state.items() if name != first},
            state | {"more": torch.ones(3)},
            state | {first: torch.ones(3, 1)},
        ],
        "not finite float32": [
            state | {first: torch.ones(3, dtype=torch.float64)},
            state | {first: torch.tensor([1.0, float("inf"), 1.0])},
        ],
    }
    for reason, wrong in cases.items():
        for tensors in wrong:
            save_checkpoint(tmp_path / "w", tensors, description(**about))
            with pytest.raises(CheckpointError, match=reason):
                load_network(tmp_path / "w")


@pytest.mark.parametrize("metadata", [METADATA, description(kind="tied") | {"score": [1]}])
def test_a_checkpoint_of_training_is_no_network(metadata, tmp_path):
    save_checkpoint(tmp_path / "c", TENSORS, metadata)
    with pytest.raises(CheckpointError, match="not one of a network"):
        load_network(tmp_path / "c")
