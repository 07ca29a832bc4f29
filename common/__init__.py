# SPDX-License-Identifier: MIT
"""What chapters include, what judges them, the emulator, and the tour."""
