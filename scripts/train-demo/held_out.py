"""Prints the held-out documents as JSON: what the bundled model was not trained on.

Needs nothing beyond Python itself. Usage: held_out.py CORPORA
"""

import json
import pathlib
import sys

import corpus


def main() -> None:
    _, held = corpus.split_held_out(corpus.read_corpus(pathlib.Path(sys.argv[1])))
    json.dump(["\n\n".join(document) for document in held], sys.stdout)


if __name__ == "__main__":
    main()
