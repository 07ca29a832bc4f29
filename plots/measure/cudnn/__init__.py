# SPDX-License-Identifier: MIT
"""NVIDIA's kernels beside ours, on the emulator."""
