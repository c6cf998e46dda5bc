# SPDX-License-Identifier: Apache-2.0
# What a user may choose, and the flags that follow for every target.

set(GRADRING_CUDA AUTO CACHE STRING "Build the CUDA module: AUTO (where nvcc is found), ON, OFF")
set(GRADRING_ONEDNN AUTO CACHE STRING "Use oneDNN on the CPU: AUTO (where it is found), ON, OFF")
set(GRADRING_PNG AUTO CACHE STRING "Read images by libpng: AUTO (where it is found), ON, OFF")
set(GRADRING_JPEG AUTO CACHE STRING "Read JPEGs by libjpeg-turbo: AUTO (where it is found), ON, OFF")
set(GRADRING_ZSTD AUTO CACHE STRING "Simulated GPUs read PTX that nvcc compressed by Zstandard: AUTO (where libzstd is found), ON, OFF")
set(GRADRING_ARCH portable CACHE STRING "Processors to build for: portable (any x86-64-v2, hot code chosen at start), or a -march: native, znver4, ...")
set(GRADRING_CPU_LEVELS all CACHE STRING "Copies of hot code in a portable build: all, or native (only the one that this machine runs)")
set(GRADRING_SANITIZE "" CACHE STRING "Sanitizers for every target: empty, address, thread")
option(GRADRING_TESTS "Build the tests (needs GoogleTest)" ON)
option(GRADRING_PRECOMPILE "Read the headers that most files include once for all of them" ON)
option(GRADRING_UNITY "Compile the sources of a library several at a time" ON)
option(GRADRING_DEBIAN "Install as Debian's packages do, and let cpack make them" OFF)
option(GRADRING_STATIC "Need no shared library at run time but glibc's and libgcc_s: static or header-only dependencies" OFF)
option(GRADRING_MAP_PATHS "Record source files by their path in the repository, so that the program is the same from any folder" OFF)
foreach(choice GRADRING_CUDA GRADRING_ONEDNN GRADRING_PNG GRADRING_JPEG GRADRING_ZSTD)
  set_property(CACHE ${choice} PROPERTY STRINGS AUTO ON OFF)
  if(NOT ${choice} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${choice} is '${${choice}}': say AUTO, ON or OFF")
  endif()
endforeach()

set_property(CACHE GRADRING_CPU_LEVELS PROPERTY STRINGS all native)
if(NOT GRADRING_CPU_LEVELS MATCHES "^(all|native)$")
  message(FATAL_ERROR "GRADRING_CPU_LEVELS is '${GRADRING_CPU_LEVELS}': say all or native")
endif()

# Where the CUDA module is installed; the program looks for it in ../ of that.
if(GRADRING_DEBIAN)
  set(GRADRING_MODULE_DIR lib/${CMAKE_LIBRARY_ARCHITECTURE}/gradring)
else()
  set(GRADRING_MODULE_DIR lib/gradring)
endif()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(GRADRING_CCACHE ccache)
mark_as_advanced(GRADRING_CCACHE)
if(GRADRING_CCACHE)
  # Another clone or worktree finds what this one compiled.
  set(gradring_ccache ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
  # ccache caches units that use a precompiled header only with this sloppiness and with
  # -fpch-preprocess (gcc) or -fno-pch-timestamp (clang).
  set(CMAKE_CXX_COMPILER_LAUNCHER ${gradring_ccache} CCACHE_SLOPPINESS=pch_defines,time_macros ${GRADRING_CCACHE})
endif()

include(GradringLevels)

# Interface target: what every host compilation of ours gets.
add_library(gradring_flags INTERFACE)
target_include_directories(gradring_flags INTERFACE ${PROJECT_SOURCE_DIR})
# Not in tests compiled several at a time: their locals may have the names of another test's constants.
set(unity_test $<AND:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>>)
set(shadow $<$<NOT:${unity_test}>:-Wshadow>)
target_compile_options(gradring_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno -fno-trapping-math
    -Wall -Wextra ${shadow} -Wnon-virtual-dtor -Woverloaded-virtual
    -Wno-psabi>)  # vectors wider than the baseline's registers are passed within one unit only
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # gcc 12 sees overlap in "literal" + std::string where there is none (its bug 105651).
    target_compile_options(gradring_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  else()
    # gcc 14 takes what std::optional::emplace destroys for uninitialized where nothing is in it, and a reference that a
    # function returns for one to a temporary that it was given.
    target_compile_options(gradring_flags INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized -Wno-dangling-reference>)
  endif()
  # gcc wants designated initialisers to name every field that has no default, and so does clang from 18 on.
  target_compile_options(gradring_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 18)
  # libstdc++ 12's std::stable_sort calls what it declares deprecated itself.
  target_compile_options(gradring_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-designated-field-initializers -Wno-deprecated-declarations
      -Wno-unknown-pragmas>)  # GCC ivdep
endif()
# With a sanitizer's checks in them, kernels whose loops are unrolled take the second level of optimisation minutes a file.
if(GRADRING_SANITIZE)
  target_compile_options(gradring_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-O1>)
endif()
if(GRADRING_SANITIZE STREQUAL address)
  target_compile_options(gradring_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer>
    # That check opens a pipe for each object, and finds all invalid where a test leaves no descriptors.
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=vptr>
    # Of what ASan adds to std::regex.
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  target_link_options(gradring_flags INTERFACE -fsanitize=address,undefined)
elseif(GRADRING_SANITIZE STREQUAL thread)
  target_compile_options(gradring_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan>)
  target_link_options(gradring_flags INTERFACE -fsanitize=thread)
elseif(GRADRING_SANITIZE)
  message(FATAL_ERROR "GRADRING_SANITIZE is '${GRADRING_SANITIZE}': say address, thread, or leave it empty")
endif()
# Additional flags of the libraries that compute.
add_library(gradring_processor INTERFACE)
target_compile_options(gradring_processor INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${GRADRING_MARCH}>>:-march=$<IF:$<BOOL:$<TARGET_PROPERTY:GRADRING_LEVEL>>,$<TARGET_PROPERTY:GRADRING_LEVEL>,${GRADRING_MARCH}>>)
# Additional flags of the code that only calls them, and of tests: it is the same for every GRADRING_ARCH, and -O1 halves its compile time.
add_library(gradring_light INTERFACE)
target_link_libraries(gradring_light INTERFACE gradring_flags)
target_compile_options(gradring_light INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
# Additional flags of targets with precompiled headers: gcc 12 takes them for ours, and warns of the inside of std::string.
add_library(gradring_precompiled INTERFACE)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(gradring_precompiled INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds -Wno-stringop-overflow>)
endif()
if(GRADRING_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(gradring_precompiled INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
elseif(GRADRING_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  target_compile_options(gradring_precompiled INTERFACE $<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>)
endif()
if(GRADRING_STATIC)
  # Not -static-libgcc: an exception that the CUDA module throws is caught by the program, and with a libgcc in each of the two
  # the program's would be asked to unwind before it is initialised (it aborts). glibc itself needs libgcc_s.
  target_link_options(gradring_flags INTERFACE -static-libstdc++)
endif()
if(GRADRING_MAP_PATHS)
  # nvcc hands an option to a shell: a path with spaces needs quotes of its own.
  target_compile_options(gradring_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffile-prefix-map=\"${PROJECT_SOURCE_DIR}/\"=>)
endif()
