# SPDX-License-Identifier: Apache-2.0
# Copies of hot sources for newer processors (kernels/runtime/cpu_level.h). Sets GRADRING_LEVELS, the levels above the baseline,
# GRADRING_MARCH, the -march of the other code that computes, and GRADRING_LEVEL_NAMES, the names of all as the program shows them.
#
# A source that is compiled with AVX emits more than its own functions: also copies of the inline functions and templates that it
# includes, which the linker may choose for the whole program. So the objects of a level are linked into one, in which every
# symbol but those of the level's namespace is made local, and the code lies in a section of its own (.x86_64_v3): tests/rules
# disassembles the rest.

set(GRADRING_LEVELS "")
set(GRADRING_LEVELS_MISSING "")
include(CheckCXXCompilerFlag)

# Sets `out` to the highest level above the baseline that this machine has, or to nothing.
function(gradring_native_level out)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null OUTPUT_VARIABLE macros ERROR_QUIET)
  set(v3 AVX2 BMI BMI2 F16C FMA LZCNT MOVBE)
  set(v4 ${v3} AVX512F AVX512BW AVX512CD AVX512DQ AVX512VL)
  set(${out} "" PARENT_SCOPE)
  foreach(level v3 v4)
    foreach(feature IN LISTS ${level})
      if(NOT macros MATCHES "#define __${feature}__ ")
        return()
      endif()
    endforeach()
    set(${out} ${level} PARENT_SCOPE)
  endforeach()
endfunction()

set(GRADRING_MARCH ${GRADRING_ARCH})
if(GRADRING_ARCH STREQUAL portable)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(GRADRING_MARCH x86-64-v2)
    # Not CMAKE_LINKER and CMAKE_OBJCOPY, which for clang are LLVM's where those are installed.
    find_program(GRADRING_LD NAMES ld.bfd ld)
    find_program(GRADRING_OBJCOPY NAMES objcopy)
    mark_as_advanced(GRADRING_LD GRADRING_OBJCOPY)
    set(help "")
    if(GRADRING_LD)
      execute_process(COMMAND ${GRADRING_LD} --help OUTPUT_VARIABLE help ERROR_QUIET)
    endif()
    if(GRADRING_SANITIZE)
      set(GRADRING_LEVELS_MISSING "a build with sanitizers has one level")
    elseif(NOT help MATCHES "force-group-allocation" OR NOT GRADRING_OBJCOPY)
      set(GRADRING_LEVELS_MISSING "no ld with --force-group-allocation, or no objcopy: install GNU binutils")
    elseif(GRADRING_CPU_LEVELS STREQUAL native)
      gradring_native_level(GRADRING_LEVELS)
      set(GRADRING_LEVELS_MISSING "GRADRING_CPU_LEVELS is native, and this machine has no higher level")
    else()
      set(GRADRING_LEVELS v3 v4)
    endif()
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(GRADRING_MARCH armv8-a)
  else()
    set(GRADRING_MARCH "")
  endif()
endif()

if(GRADRING_MARCH)
  string(MAKE_C_IDENTIFIER "GRADRING_HAS_MARCH_${GRADRING_MARCH}" known)
  check_cxx_compiler_flag(-march=${GRADRING_MARCH} ${known})
  if(NOT ${known})
    message(FATAL_ERROR "GRADRING_ARCH is '${GRADRING_ARCH}', but ${CMAKE_CXX_COMPILER} has no -march=${GRADRING_MARCH}: "
                        "use portable, native or a processor that it knows")
  endif()
elseif(NOT GRADRING_ARCH STREQUAL portable)
  message(FATAL_ERROR "GRADRING_ARCH is empty: use portable, native or the -march of a processor")
endif()

# "native" is a name that differs from machine to machine, and compilers give processors that they do not know the name of an older
# one: znver3+avx512f.
set(GRADRING_LEVEL_NAMES ${GRADRING_MARCH})
if(GRADRING_MARCH STREQUAL native)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -v -x c++ /dev/null OUTPUT_VARIABLE macros ERROR_VARIABLE text)
  if(NOT text MATCHES "(cc1plus[^\n]* -march=|-target-cpu\"? \"?)([a-z0-9._-]+)")
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} does not tell what -march=native stands for: set GRADRING_ARCH to a name")
  endif()
  set(GRADRING_LEVEL_NAMES ${CMAKE_MATCH_2})
  if(macros MATCHES "__AVX512F__")
    string(APPEND GRADRING_LEVEL_NAMES +avx512f)
  endif()
elseif(NOT GRADRING_MARCH)
  set(GRADRING_LEVEL_NAMES ${CMAKE_SYSTEM_PROCESSOR})
endif()
if(GRADRING_LEVELS)
  foreach(level v3 v4)  # a level that is not compiled has an empty name
    string(APPEND GRADRING_LEVEL_NAMES ",")
    if(level IN_LIST GRADRING_LEVELS)
      string(APPEND GRADRING_LEVEL_NAMES "x86-64-${level}")
    endif()
  endforeach()
endif()

# Which copies there are, for kernels/lib/level_copies.h: a header, so that another choice compiles the few sources that include it.
set(copies "// Written by GradringLevels.cmake: the levels of GRADRING_CPU_LEVELS.\n#pragma once\n")
foreach(level IN LISTS GRADRING_LEVELS)
  string(TOUPPER ${level} name)
  string(APPEND copies "#define GRADRING_CPU_${name}\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/gradring_cpu_levels.h CONTENT "${copies}")
set(GRADRING_LEVELS_DEFINITION $<$<BOOL:${GRADRING_LEVELS}>:GRADRING_CPU_LEVELS>)

# gradring_level_sources(gradring_kernels 1_flat.cu): sources of a target, listed there as usual, that are compiled once more for each
# level. What they call in other sources of the namespace GRADRING_KERNEL_COPY must be listed too.
function(gradring_level_sources target)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY GRADRING_LEVEL_SOURCES_${target} ${ARGN})
endfunction()

# gradring_add_levels(gradring_kernels): adds the copies of all sources listed so far. Called in the target's folder.
function(gradring_add_levels target)
  get_property(sources GLOBAL PROPERTY GRADRING_LEVEL_SOURCES_${target})
  set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX)
  target_compile_definitions(${target} PRIVATE ${GRADRING_LEVELS_DEFINITION})
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/include)
  foreach(level IN LISTS GRADRING_LEVELS)
    set(copy ${target}_${level})
    add_library(${copy} OBJECT ${sources})
    target_link_libraries(${copy} PRIVATE gradring_flags gradring_processor)
    set_target_properties(${copy} PROPERTIES GRADRING_LEVEL x86-64-${level} INTERPROCEDURAL_OPTIMIZATION OFF)
    target_compile_definitions(${copy} PRIVATE GRADRING_KERNEL_COPY=on_cpu_${level})
    target_compile_options(${copy} PRIVATE -fno-lto $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${copy}.o)
    set(script ${CMAKE_CURRENT_BINARY_DIR}/${copy}.ld)
    file(CONFIGURE OUTPUT ${script} CONTENT
"SECTIONS { .x86_64_@level@ : { *(.text .text.*) } .init_array : { *(.init_array .init_array.*) } }
ASSERT(SIZEOF(.init_array) == 0, \"a source of a level has a static initialiser, which would run on every processor\")
" @ONLY)
    add_custom_command(OUTPUT ${object}
      COMMAND ${GRADRING_LD} -r --force-group-allocation -T ${script} -o ${object}.all "$<FILTER:$<TARGET_OBJECTS:${copy}>,EXCLUDE,[.][gp]ch$>"
      COMMAND ${GRADRING_OBJCOPY} --wildcard "--keep-global-symbol=*on_cpu_${level}*" "--keep-global-symbol=_ZT[IS]*"
              ${object}.all ${object}
      DEPENDS $<TARGET_OBJECTS:${copy}> ${script}
      COMMENT "Linking ${copy}.o" COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    target_sources(${target} PRIVATE ${object})
    set_property(GLOBAL APPEND PROPERTY GRADRING_LEVEL_OBJECTS_${target} ${object})
  endforeach()
endfunction()
