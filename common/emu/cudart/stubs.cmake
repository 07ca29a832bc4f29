# SPDX-License-Identifier: MIT
# Writes STUBS: for every name that libcudart 13.0 exports, NAMES, a weak function that says it is
# not supported, and for every one that common/emu/foreign implements, FOREIGN_NAMES, one that says
# it is left out. Those the runtime implements are stronger.

file(STRINGS ${NAMES} names)
file(STRINGS ${FOREIGN_NAMES} foreign REGEX "^[^#]")
list(REMOVE_ITEM names ${foreign})
set(text "// Made from names.txt and foreign_names.txt.\nextern \"C\" {\n")
string(APPEND text "int gg_emu_unsupported(const char* name);\nint gg_emu_left_out(const char* name);\n")
foreach(name IN LISTS names)
  string(APPEND text "[[gnu::weak]] int ${name}() { return gg_emu_unsupported(\"${name}\"); }\n")
endforeach()
foreach(name IN LISTS foreign)
  string(APPEND text "[[gnu::weak]] int ${name}() { return gg_emu_left_out(\"${name}\"); }\n")
endforeach()
list(JOIN foreign "\",\n\"" foreign)
string(APPEND text "extern const char* const gg_emu_foreign_names[];\n")
string(APPEND text "const char* const gg_emu_foreign_names[] = {\n\"${foreign}\",\nnullptr};\n")
file(WRITE ${STUBS} "${text}}\n")
