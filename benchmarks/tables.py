"""Prints a table and writes it as CSV into benchmarks/out/."""

import csv
from pathlib import Path

OUT = Path(__file__).parent / "out"


def print_and_write(name: str, header: list[str], rows: list[list[object]]) -> None:
    """Print the rows under the header, aligned, and write them to out/NAME.csv."""
    write_csv(name, header, rows)
    cells = [header] + [
        [f"{c:.3f}" if isinstance(c, float) else str(c) for c in row] for row in rows
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for row in cells:
        print(
            "  ".join(
                c.ljust(w) if i == 0 else c.rjust(w)
                for i, (c, w) in enumerate(zip(row, widths, strict=True))
            )
        )
    print(f"\nwritten to {OUT / name}.csv")


def write_csv(name: str, header: list[str], rows: list[list[object]]) -> None:
    """Write the rows to out/NAME.csv."""
    OUT.mkdir(exist_ok=True)
    with (OUT / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
