# SPDX-License-Identifier: MIT
"""How numbers come to be: what times, counts and predicts, and the data that it leaves. Nothing here imports plots/draw."""
