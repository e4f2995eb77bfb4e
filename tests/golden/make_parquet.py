#!/usr/bin/env python3
"""Makes table.parquet, a table with missing values; needs pyarrow."""
import os

import pyarrow
import pyarrow.parquet

pyarrow.parquet.write_table(
    pyarrow.table({"a": pyarrow.array([0.5, None, 2.25, -1.0], pyarrow.float64()),
                   "city": ["Oslo", "Rome", None, "Oslo"],
                   "price": pyarrow.array([1, 2, 3, 4], pyarrow.int32())}),
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "table.parquet"),
    compression="none", write_statistics=False, store_schema=False)
