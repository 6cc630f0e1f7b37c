"""``predict``: labels of new data from a saved model."""

from __future__ import annotations

import argparse

HELP = "assign data to the clusters of a saved model"


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Declare the arguments."""
    parser = subparsers.add_parser("predict", help=HELP, description=HELP)
    parser.add_argument("data", metavar="DATA", help=".csv, .parquet, .npy or .npz file")
    parser.add_argument("--model", required=True, metavar="FILE", help="written by fit --model")
    parser.add_argument(
        "--labels", metavar="FILE", help="where to write them, .csv or .npy (standard output)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Read data and model, write the labels."""
    from sklearn_leanclust.commands._model_file import load_model
    from sklearn_leanclust.commands._outputs import check_outputs, csv_text, save_array
    from sklearn_leanclust.commands._report import size_lines
    from sklearn_leanclust.commands._tables import read_table

    check_outputs({"--labels": (args.labels, (".csv", ".npy"))}, inputs=[args.data, args.model])
    model = load_model(args.model)
    table = read_table(args.data)
    X = table.numbers(matching_columns(table, model.feature_names))
    labels = model.predict(X)
    if args.labels is None:
        print(csv_text(labels, ["label"]), end="")
        return
    save_array(args.labels, labels, ["label"])
    print(f"{args.data}: {len(X)} rows")
    print("\n".join(size_lines(labels, len(model.cluster_centers))))


def matching_columns(table, feature_names: list[str]) -> list[str]:
    """Find the columns that a model was fitted on, by name; in an array without them, by order."""
    if table.is_named or set(feature_names) <= set(table.columns):
        return feature_names
    if len(table.columns) != len(feature_names):
        raise ValueError(
            f"{table.path} has {len(table.columns)} features, but the model is expecting "
            f"{len(feature_names)} features: {','.join(feature_names[:30])}."
        )
    return table.columns
