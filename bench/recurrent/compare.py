#!/usr/bin/python3
"""`bench/run recurrent`: LSTM and GRU, two layers of 256 units on 100 positions, trained by Artel and by PyTorch."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from training import Case, main  # noqa: E402

main("bench/run recurrent", [Case(name, unit="positions/s", units_per_sample=100) for name in ("lstm", "gru")])
