# SPDX-License-Identifier: MIT
"""The cycles of an epilogue, predicted from the machine code of a kernel."""
