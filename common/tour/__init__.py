# SPDX-License-Identifier: MIT
"""The tour: every chapter that was built, one after the other."""
