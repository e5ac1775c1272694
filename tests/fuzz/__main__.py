"""Read damaged files and count what becomes of them: `python tests/fuzz --cases 1000 [--first 1] [TARGET ...]`."""

from __future__ import annotations

import argparse
import sys

from driver import BAD, REFUSED, SUCCESS, Worker, all_targets, run

COLUMNS = ("cases", SUCCESS, REFUSED, *BAD, "peak MB", "longest s", "its case")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: all of {', '.join(all_targets())}")
    parser.add_argument("--cases", type=int, default=1000, help="of each target")
    parser.add_argument("--first", type=int, default=1, help="number of the first case")
    given = parser.parse_args()
    total = 0
    print(f"{'':16}" + "".join(f"{column:>16}" for column in COLUMNS))
    with Worker() as worker:
        for name, counts in run(given.targets or all_targets(), range(given.first, given.first + given.cases), worker):
            outcomes = [counts.outcomes[column] for column in COLUMNS[1:-3]]
            row = [counts.cases, *outcomes, counts.megabytes, f"{counts.seconds:.1f}", counts.longest]
            print(f"{name:16}" + "".join(f"{cell:>16}" for cell in row), flush=True)
            for number, outcome, error in counts.bad:
                print(f"--- {name} {number}: {outcome}\n{error}", file=sys.stderr)
            total += len(counts.bad)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
