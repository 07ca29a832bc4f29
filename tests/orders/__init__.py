# SPDX-License-Identifier: MIT
"""Every chapter in a thousand orders of warps and asynchronous effects."""
