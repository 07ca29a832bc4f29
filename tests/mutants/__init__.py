# SPDX-License-Identifier: MIT
"""Copies of the chapters' kernels with one line changed, which a check must notice."""
