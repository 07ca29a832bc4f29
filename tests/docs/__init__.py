# SPDX-License-Identifier: MIT
"""Tests of what the prose, the figures and the tools promise."""
