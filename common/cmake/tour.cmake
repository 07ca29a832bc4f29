# SPDX-License-Identifier: MIT
# The target `tour`, which runs every chapter that was built and draws the figures, the target
# `grade`, which says which Extend exercises of theirs the tree meets, and the targets of plots/.

include(matplotlib)
get_property(built GLOBAL PROPERTY gg_chapters)
get_property(wholes GLOBAL PROPERTY gg_wholes)
list(APPEND built ${wholes})
# A chapter is checked and shown while others compile. make goes once through what `tour` waits for,
# the last one by name first and then in the order of names, and begins what can be begun. So a
# chapter's check comes after the third chapter after it, and what needs all chapters at the end.
# The harness waits for the emulator, without which no chapter can be checked.
set(steps)
set(waiting)
foreach(id IN LISTS built)
  add_custom_target(tour_${id}
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/common/tour/tour.py --build ${CMAKE_BINARY_DIR} --one ${id}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} VERBATIM)
  add_dependencies(tour_${id} gg_emu_cudart ${id})
  add_custom_target(step_${id})
  list(APPEND waiting tour_${id})
  list(LENGTH waiting length)
  set(begun)
  if(length GREATER 3)
    list(POP_FRONT waiting begun)
  endif()
  add_dependencies(step_${id} ${id} ${begun})
  list(APPEND steps step_${id})
endforeach()
if(NOT GG_TESTS)
  add_dependencies(gg_harness gg_emu_cudart)
endif()
add_custom_target(step_rest)  # the README goes on to use its last two
add_dependencies(step_rest ${waiting} describe gg-roof gg-emu gg-ptx)
add_custom_target(tour
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/common/tour/tour.py
          --build ${CMAKE_BINARY_DIR} --plot-python "${gg_plot_python}" ${built}
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} USES_TERMINAL VERBATIM)
add_custom_target(steps_begin)  # the last name
add_dependencies(tour ${steps} step_rest steps_begin)
add_custom_target(grade
  COMMAND ${Python3_EXECUTABLE} -B -m tests.exercises.grade ${CMAKE_BINARY_DIR} ${built}
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} USES_TERMINAL VERBATIM)
add_dependencies(grade ${built} gg-emu)  # which brings the emulator's runtime
add_subdirectory(${CMAKE_SOURCE_DIR}/plots)
