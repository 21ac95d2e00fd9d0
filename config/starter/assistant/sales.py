"""Totals of sales.csv, which lies beside this file."""
import csv
import os


def sales_total(column, by=None, region=None, product=None):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sales.csv")
    totals = {}
    rows = 0
    with open(path, newline="", encoding="utf-8") as table:
        for row in csv.DictReader(table):
            if region is not None and row["region"] != region:
                continue
            if product is not None and row["product"] != product:
                continue
            rows += 1
            key = row[by] if by else "total"
            totals[key] = totals.get(key, 0) + int(row[column])
    print("read %d matching rows of sales.csv" % rows)
    if rows == 0:
        raise ValueError("no row matches; regions and products are written as in the table")
    return {"column": column, "rows": rows, "totals": totals}
