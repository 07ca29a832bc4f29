# SPDX-License-Identifier: MIT
# Counts the tests that passed so far in ctest's log, where one that was skipped has another line.

# While ctest runs, its log has such a name; one that was interrupted may have left another behind.
file(GLOB candidates ${temporary}/LastTest.log.tmp*)
list(POP_FRONT candidates log)
foreach(candidate IN LISTS candidates)
  if(${candidate} IS_NEWER_THAN ${log})
    set(log ${candidate})
  endif()
endforeach()
file(STRINGS ${log} passed REGEX "^Test Passed\\.$")
file(STRINGS ${log} skipped REGEX "^Skip regular expression found")
file(STRINGS ${minimum} minimum REGEX "^[0-9]+$")
list(LENGTH passed passed)
list(LENGTH skipped skipped)
set(counts "${passed} tests passed, ${skipped} were skipped")
if(passed LESS minimum)
  message(FATAL_ERROR "${counts}, but tests/minimum_tests.txt asks for ${minimum} that pass.")
endif()
message("${counts}; tests/minimum_tests.txt asks for ${minimum} that pass.")
