# SPDX-License-Identifier: MIT
"""What cmake --workflow --preset check runs. A test in Python is run from the repository's root: python3 -B -m tests.docs.rooms_test."""
