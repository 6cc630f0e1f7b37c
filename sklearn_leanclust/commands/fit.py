"""``fit``: cluster a table, write the results, report how good they are."""

from __future__ import annotations

import argparse

HELP = "cluster the rows of a table"
OUTPUTS = {
    "labels": ((".csv", ".npy"), "cluster of each row"),
    "centers": ((".csv", ".npy"), "centre of each cluster, in the data's own units"),
    "model": ((".npz", ".safetensors"), "what predict needs"),
    "plot": ((".png",), "picture of the clusters, of principal components beyond two columns"),
}
PARAMETERS = {
    "max_iter": (int, "steps of the network"),
    "embedding": (str, "code that tells the clusters apart"),
    "regularizer": (str, "of the smoothed minimum that weights are trained with"),
    "tau": (float, "strength of the regularizer"),
    "weights": (str, "of the network"),
    "device": (str, "where the network runs"),
}


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Declare the arguments; parameters that are not given stay out of the namespace."""
    parser = subparsers.add_parser("fit", help=HELP, description=HELP)
    parser.add_argument(
        "data",
        metavar="DATA",
        help="rows to cluster: .csv with column names, .parquet, .npy, or .npz with one array or X",
    )
    parser.add_argument(
        "-k", "--n-clusters", metavar="K", type=int, required=True, help="number of clusters"
    )
    parser.add_argument("--columns", metavar="A,B", help="names, for arrays positions from 0 (all)")
    parser.add_argument(
        "--standardize", action="store_true", help="bring columns to mean 0 and variance 1 first"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the start (0)")

    group = parser.add_argument_group("outputs")
    for name, (suffixes, text) in OUTPUTS.items():
        group.add_argument(f"--{name}", metavar="FILE", help=f"{text} ({', '.join(suffixes)})")

    group = parser.add_argument_group("parameters of TransformerKMeans")
    for name, (kind, text) in PARAMETERS.items():
        option = f"--{name.replace('_', '-')}"
        group.add_argument(option, metavar="X", type=kind, default=argparse.SUPPRESS, help=text)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Read, fit, write, compare."""
    from sklearn_leanclust.commands._outputs import check_outputs
    from sklearn_leanclust.commands._tables import parse_columns, read_table

    check_outputs(
        {f"--{name}": (getattr(args, name), suffixes) for name, (suffixes, _) in OUTPUTS.items()},
        inputs=[args.data],
    )
    table = read_table(args.data)
    names = table.columns if args.columns is None else parse_columns(args.columns)
    X = table.numbers(names)

    # slow to import, and loaded before the clock starts
    import sklearn_leanclust.network.search  # noqa: F401
    from sklearn_leanclust import TransformerKMeans
    from sklearn_leanclust.commands._model_file import ClusterModel, Scaling
    from sklearn_leanclust.commands._report import comparison_lines, size_lines, timed_fit

    scaling = Scaling.of(X) if args.standardize else Scaling.none(X)
    X = scaling.apply(X)

    given = {name: getattr(args, name) for name in PARAMETERS if name in args}
    estimator = TransformerKMeans(args.n_clusters, random_state=args.seed, **given)
    seconds = timed_fit(estimator, X)
    write_outputs(args, X, estimator, ClusterModel(estimator.cluster_centers_, scaling, names))

    units = ", standardized" if args.standardize else ""
    print(f"{args.data}: {len(X)} rows x {len(names)} columns{units}\n")
    print(*size_lines(estimator.labels_, args.n_clusters), "", sep="\n")
    for line in comparison_lines(estimator, seconds, X):
        print(line, flush=True)


def write_outputs(args: argparse.Namespace, X, estimator, model) -> None:
    """Write those that were asked for."""
    from sklearn_leanclust.commands._model_file import save_model
    from sklearn_leanclust.commands._outputs import save_array, write_atomically

    if args.labels:
        save_array(args.labels, estimator.labels_, ["label"])
    if args.centers:
        centers = model.scaling.undo(model.cluster_centers)
        save_array(args.centers, centers, model.feature_names)
    if args.model:
        save_model(args.model, model)
    if args.plot:
        from matplotlib.figure import Figure

        from sklearn_leanclust.plotting import ClusterDisplay

        figure = Figure(figsize=(7, 5), layout="constrained")
        ClusterDisplay.from_predictions(
            X,
            estimator.labels_,
            centers=model.cluster_centers,
            feature_names=model.feature_names,
            ax=figure.subplots(),
        )
        with write_atomically(args.plot) as file:
            figure.savefig(file, format="png", dpi=150)
