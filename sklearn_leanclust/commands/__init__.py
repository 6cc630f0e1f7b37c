"""One module for each subcommand of the command line.

Each has ``add_parser(subparsers)``, which sets ``run`` as the parser's default, and ``run(args)``.
Bad input is a ValueError or OSError. What takes long to import is imported in ``run``, so that
``--help`` and mistakes in the arguments answer at once.
"""

COMMANDS = ("fit", "predict", "train", "weights", "bench", "experiment")
