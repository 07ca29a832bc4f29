# SPDX-License-Identifier: MIT
"""How numbers are shown: figures, tables and marked sentences, made of the data of plots/measure."""
