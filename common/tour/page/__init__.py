# SPDX-License-Identifier: MIT
"""The page of a tour: one file of HTML with the ladder, each chapter's diff and a player of its warps."""
