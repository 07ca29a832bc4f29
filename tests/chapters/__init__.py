# SPDX-License-Identifier: MIT
"""Tests of each chapter that was built, and what promises_test.py of a chapter is made of."""
