# SPDX-License-Identifier: MIT
# The target `tour`, which runs every chapter that was built and draws the figures, the target
# `grade`, which says which Extend exercises of theirs the tree meets, and the targets of plots/.

include(matplotlib)
get_property(built GLOBAL PROPERTY gg_chapters)
get_property(wholes GLOBAL PROPERTY gg_wholes)
list(APPEND built ${wholes})
# A chapter is checked and shown as soon as it is built, one after the other, while others compile.
# The target `tour` then keeps those results.
set(after)
foreach(id IN LISTS built)
  add_custom_target(tour_${id}
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/common/tour/tour.py --build ${CMAKE_BINARY_DIR} --one ${id}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} VERBATIM)
  add_dependencies(tour_${id} gg_emu_cudart ${after} ${id})
  set(after tour_${id})
endforeach()
add_custom_target(tour
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/common/tour/tour.py
          --build ${CMAKE_BINARY_DIR} --plot-python "${gg_plot_python}" ${built}
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} USES_TERMINAL VERBATIM)
# The README goes on to use the last two
add_dependencies(tour ${after} ${built} describe gg-roof gg-emu gg-ptx)
add_custom_target(grade
  COMMAND ${Python3_EXECUTABLE} -B -m tests.exercises.grade ${CMAKE_BINARY_DIR} ${built}
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} USES_TERMINAL VERBATIM)
add_dependencies(grade ${built} gg-emu)  # which brings the emulator's runtime
add_subdirectory(${CMAKE_SOURCE_DIR}/plots)
