# SPDX-License-Identifier: MIT
"""Tests of how code is compiled."""
