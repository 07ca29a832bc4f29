# SPDX-License-Identifier: MIT
"""When each multiprocessor does what in a launch."""
