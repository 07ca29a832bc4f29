# SPDX-License-Identifier: MIT
# A script, run at each build: writes `file`, the source of gg::commit(), if it would say something else than it does.
# `commit` is what it says; empty: asked of `git` in `source`.

if(NOT commit)
  execute_process(
    COMMAND ${git} --no-optional-locks describe --always --dirty --exclude=* --abbrev=12
    WORKING_DIRECTORY ${source} OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
#include "common/base/csv.h"

const char* gg::commit() { return "@commit@"; }
]])
