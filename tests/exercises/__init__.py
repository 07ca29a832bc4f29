# SPDX-License-Identifier: MIT
"""The exercises of the chapters: their edits, what must be printed, and the grader."""
