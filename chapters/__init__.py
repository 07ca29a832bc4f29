# SPDX-License-Identifier: MIT
"""The chapters, and what Python knows of their order and of the files that they share."""
