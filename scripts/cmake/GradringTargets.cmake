# SPDX-License-Identifier: Apache-2.0
# What the CMakeLists of the folders declare.

# gradring_library(kernels): the static library gradring_kernels, to which subfolders add with target_sources.
# LIGHT: it computes little, and is compiled with gradring_light, others with gradring_processor. GRADRING_UNITY compiles up to 12
# sources as one, so that names in their anonymous namespaces must differ. SEPARATE: one object for each source, because the CUDA
# module links few of them.
function(gradring_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LIGHT;SEPARATE" "" "")
  add_library(gradring_${name} STATIC)
  target_link_libraries(gradring_${name} PUBLIC gradring_flags)
  if(GRADRING_UNITY AND NOT arg_SEPARATE)
    set_target_properties(gradring_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
  endif()
  if(arg_LIGHT)
    target_link_libraries(gradring_${name} PRIVATE gradring_light)
  else()
    target_link_libraries(gradring_${name} PRIVATE gradring_processor)
  endif()
endfunction()

# gradring_precompile(gradring_comm <fmt/format.h>): the headers that many files of a target include, these and the
# standard library's, are read once and not by each. Every file includes what it needs all the same: lint.sh sees it without.
function(gradring_precompile target)
  if(GRADRING_PRECOMPILE)
    target_link_libraries(${target} PRIVATE gradring_precompiled)
    foreach(header <algorithm> <chrono> <filesystem> <functional> <memory> <optional> <string> <vector> ${ARGN})
      target_precompile_headers(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${header}>)
    endforeach()
  endif()
endfunction()

# gradring_headers(train_headers HEADERS <fmt/format.h> LIBRARIES fmt::fmt): headers that are precompiled once for several
# light libraries, or with EXECUTABLE for several light programs: gradring_reuse_headers(target train_headers). Compilers
# want the same definitions, so these targets link LIBRARIES, too, and the same -fPIC or -fPIE.
function(gradring_headers name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "EXECUTABLE" "" "HEADERS;LIBRARIES")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
  if(arg_EXECUTABLE)
    add_executable(gradring_${name} ${source})
  else()
    add_library(gradring_${name} OBJECT ${source})
  endif()
  target_link_libraries(gradring_${name} PRIVATE gradring_light ${arg_LIBRARIES})
  gradring_precompile(gradring_${name} ${arg_HEADERS})
endfunction()

function(gradring_reuse_headers target name)
  if(GRADRING_PRECOMPILE)
    target_link_libraries(${target} PRIVATE gradring_precompiled)
    target_precompile_headers(${target} REUSE_FROM gradring_${name})
  endif()
endfunction()

# gradring_room(core/ddp ROOMS optim LIBRARIES gradring_nn): the library gradring_train_ddp of the sources below
# train/core/ddp, or of SOURCES alone. ROOMS are those that it includes, declared before it, so no two can include each other.
function(gradring_room path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ROOMS;LIBRARIES;SOURCES")
  cmake_path(GET path FILENAME name)
  gradring_library(train_${name} LIGHT)
  foreach(room IN LISTS arg_ROOMS)
    if(NOT TARGET gradring_train_${room})
      message(FATAL_ERROR "room ${name} depends on ${room}, which is not declared before it")
    endif()
    list(APPEND arg_LIBRARIES gradring_train_${room})
  endforeach()
  if(arg_SOURCES)
    list(TRANSFORM arg_SOURCES PREPEND ${path}/)
  else()
    file(GLOB_RECURSE arg_SOURCES CONFIGURE_DEPENDS ${path}/*.cpp)
  endif()
  target_sources(gradring_train_${name} PRIVATE ${arg_SOURCES})
  target_link_libraries(gradring_train_${name} PUBLIC ${arg_LIBRARIES} gradring_runtime fmt::fmt)
  gradring_reuse_headers(gradring_train_${name} train_headers)
  set_property(GLOBAL APPEND PROPERTY GRADRING_ROOMS gradring_train_${name})
endfunction()

# gradring_device_sources(bias/1_rows.cu kernel_set.cpp): the same text twice, into gradring_kernels by the host compiler and,
# where CUDA is built, into the CUDA module: .cu by nvcc, .cpp (no device code) by the host compiler. The LANGUAGE property holds
# per directory, so the CUDA copy is declared in another one (train/core/cuda_module), from the list that is kept here.
# HOPPER: for instructions that compute capability 9.0 has and no later one; nvcc compiles these for that alone.
function(gradring_device_sources)
  cmake_parse_arguments(PARSE_ARGV 0 arg "HOPPER" "" "")
  set(list GRADRING_DEVICE_SOURCES)
  if(arg_HOPPER)
    set(list GRADRING_HOPPER_SOURCES)
  endif()
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    set(path ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    set_source_files_properties(${path} TARGET_DIRECTORY gradring_kernels PROPERTIES LANGUAGE CXX)
    target_sources(gradring_kernels PRIVATE ${path})
    set_property(GLOBAL APPEND PROPERTY ${list} ${path})
  endforeach()
endfunction()

# gradring_device_code(target): nvcc compiles its .cu, which include kernels/simt/simt.h.
function(gradring_device_code target)
  target_compile_definitions(${target} PRIVATE GRADRING_KERNEL_COPY=on_cuda)
  # CMake 3.25 does not know that nvcc 12 and later have C++20.
  if(NOT cuda_std_20 IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    set_target_properties(${target} PROPERTIES CUDA_STANDARD_REQUIRED OFF)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
  else()
    set_target_properties(${target} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON)
  endif()
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -lineinfo -Xcompiler=-Wall,-Wextra>
    $<$<COMPILE_LANGUAGE:CUDA>:${GRADRING_LZ4_OPTIONS}>)
endfunction()

# gradring_operation(gemm LEVELS strips.cu ONCE 7_mma.cu HOPPER 8_wgmma.cu): an operation, with the sources in
# kernels/ops/gemm. LEVELS: chosen on CPUs, so the host compiler also compiles them for each instruction level (GradringLevels.cmake);
# ONCE: the others; HOPPER: see gradring_device_sources; CPU_LEVELS: as LEVELS, not for CUDA (kernels/ops/only_on_cpu.cpp).
function(gradring_operation name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LEVELS;ONCE;HOPPER;CPU_LEVELS")
  foreach(kind LEVELS ONCE HOPPER CPU_LEVELS)
    list(TRANSFORM arg_${kind} PREPEND ops/${name}/)
  endforeach()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/ops/${name}/${name}.cpp)
    target_sources(gradring_kernels PRIVATE ops/${name}/${name}.cpp)
  endif()
  target_sources(gradring_kernels PRIVATE ${arg_CPU_LEVELS})
  gradring_device_sources(${arg_LEVELS} ${arg_ONCE})
  gradring_device_sources(HOPPER ${arg_HOPPER})
  gradring_level_sources(gradring_kernels ${arg_LEVELS} ${arg_CPU_LEVELS})
endfunction()

# gradring_embed(gradring_train_bench bench/pytorch_training.py train/bench/pytorch_peer.h gradring::train::bench::kPyTorchScript):
# the text of a file as a constant of the program; the header declares it.
function(gradring_embed target file header constant)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  cmake_path(GET file FILENAME name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[// Written by gradring_embed.
#include "@header@"

const char* const @constant@ = R"EMBEDDED(@text@)EMBEDDED";
]])
  target_sources(${target} PRIVATE ${source})
endfunction()

# gradring_test(name SOURCES ... LIBRARIES ... [FILTER ... | SERIAL ...]): one GoogleTest binary, each of its tests known to ctest,
# labelled `name`; with FILTER, a --gtest_filter, those alone. Of those that match SERIAL, another, ctest runs one at a time.
function(gradring_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILTER;SERIAL" "SOURCES;LIBRARIES")
  add_executable(test_${name} ${arg_SOURCES})
  if(GRADRING_UNITY)
    set_target_properties(test_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
  target_link_libraries(test_${name} PRIVATE gradring_light ${arg_LIBRARIES} GTest::gmock_main)
  gradring_reuse_headers(test_${name} test_headers)
  set(properties LABELS ${name} TIMEOUT 600 ENVIRONMENT OMP_NUM_THREADS=1)
  if(arg_SERIAL)
    gtest_discover_tests(test_${name} TEST_PREFIX ${name}. TEST_FILTER "${arg_SERIAL}" TEST_LIST serial NO_PRETTY_VALUES
      DISCOVERY_TIMEOUT 60 PROPERTIES ${properties} RESOURCE_LOCK ${name})
    set(arg_FILTER "-${arg_SERIAL}")
  endif()
  gtest_discover_tests(test_${name} TEST_PREFIX ${name}. TEST_FILTER "${arg_FILTER}" NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60
    PROPERTIES ${properties})
endfunction()

# gradring_built_file(test_cuda_module GRADRING_CUDA_MODULE gradring_cuda): the definition is the path of the built target
# relative to the test's own folder, for built_file() of tests/support.
function(gradring_built_file test definition target)
  target_compile_definitions(${test} PRIVATE
    ${definition}="$<PATH:RELATIVE_PATH,$<TARGET_FILE:${target}>,$<TARGET_FILE_DIR:${test}>>")
  add_dependencies(${test} ${target})
endfunction()

# gradring_test_gpus(test_nn): the test runs on real or simulated GPUs, from GpuModules of tests/support/test_gpus.h.
function(gradring_test_gpus test)
  target_link_libraries(${test} PRIVATE gradring_test_gpus)
  foreach(module cuda simulated_gpu_module)
    set(definition GRADRING_CUDA_MODULE)
    if(module STREQUAL simulated_gpu_module)
      set(definition GRADRING_SIMULATED_GPU_MODULE)
    endif()
    if(TARGET gradring_${module})
      gradring_built_file(${test} ${definition} gradring_${module})
    else()
      target_compile_definitions(${test} PRIVATE ${definition}="")
    endif()
  endforeach()
endfunction()

# gradring_test_lower_levels(kernels [FILTER]): the suite once more at each level below the processor's highest; skipped where
# the processor has no higher one. FILTER is a --gtest_filter.
function(gradring_test_lower_levels name)
  set(filter *)
  if(ARGN)
    set(filter ${ARGN})
  endif()
  set(lower x86-64-v2 x86-64-v3)
  if(NOT GRADRING_LEVELS)
    set(lower "")
  endif()
  add_dependencies(test_${name} print_cpu_level)
  foreach(level IN LISTS lower)
    add_test(NAME ${name}.at_${level} COMMAND ${PROJECT_SOURCE_DIR}/tests/support/at_lower_level.sh ${level}
      $<TARGET_FILE:print_cpu_level> $<TARGET_FILE:test_${name}> --gtest_brief=1 "--gtest_filter=${filter}")
    set_tests_properties(${name}.at_${level} PROPERTIES LABELS ${name} TIMEOUT 600 SKIP_RETURN_CODE 77)
  endforeach()
endfunction()
