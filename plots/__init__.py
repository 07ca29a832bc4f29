# SPDX-License-Identifier: MIT
"""How numbers come to be (measure) and how they are shown (draw). Programs are run from the repository's root:
python3 -B -m plots.draw.plot."""
