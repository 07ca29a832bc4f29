# SPDX-License-Identifier: MIT
# Writes STUBS: for every name that libcudart 13.0 exports, NAMES, a weak function that says it is
# not supported. Those the runtime implements are stronger.

file(STRINGS ${NAMES} names)
set(text "// Made from names.txt.\nextern \"C\" {\nint gg_emu_unsupported(const char* name);\n")
foreach(name IN LISTS names)
  string(APPEND text "[[gnu::weak]] int ${name}() { return gg_emu_unsupported(\"${name}\"); }\n")
endforeach()
file(WRITE ${STUBS} "${text}}\n")
