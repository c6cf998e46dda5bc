# SPDX-License-Identifier: Apache-2.0
# Enables the CUDA language where it can be; sets GRADRING_HAVE_CUDA and GRADRING_LZ4_OPTIONS, or says in
# GRADRING_CUDA_MISSING why it cannot.
# Hints: CMAKE_CUDA_COMPILER, the environment's CUDACXX, CUDAARCHS and CUDA_HOME, CUDAToolkit_ROOT, CMAKE_CUDA_ARCHITECTURES.

include(CheckLanguage)
include(GradringNvidiaRoots)

# Sets `out` to the first nvcc of: what the user named, PATH, the usual folders, pip's wheels.
function(gradring_find_nvcc out)
  if(CMAKE_CUDA_COMPILER)
    set(${out} ${CMAKE_CUDA_COMPILER} PARENT_SCOPE)
    return()
  elseif(DEFINED ENV{CUDACXX})
    set(${out} $ENV{CUDACXX} PARENT_SCOPE)
    return()
  endif()
  gradring_nvidia_roots(roots)
  list(TRANSFORM roots APPEND /bin)
  find_program(nvcc nvcc HINTS ${CUDAToolkit_ROOT}/bin $ENV{CUDA_HOME}/bin PATHS ${roots} /usr/local/cuda/bin NO_CACHE)
  set(${out} ${nvcc} PARENT_SCOPE)
endfunction()

# Sets `out` to what stands in the way of this nvcc, or to nothing: 12.0 was the first to know C++20.
function(gradring_nvcc_fault nvcc out)
  set(${out} "" PARENT_SCOPE)
  if(NOT nvcc)
    set(${out} "no nvcc in PATH, CUDACXX, CUDA_HOME or /usr/local/cuda: install the CUDA toolkit, 12.0 or later" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE failed)
  if(failed OR NOT text MATCHES "release ([0-9.]+)")
    set(${out} "${nvcc} does not run: install the CUDA toolkit, 12.0 or later, anew" PARENT_SCOPE)
  elseif(CMAKE_MATCH_1 VERSION_LESS 12.0)
    set(${out} "${nvcc} is ${CMAKE_MATCH_1}, which has no C++20: install the CUDA toolkit, 12.0 or later" PARENT_SCOPE)
  endif()
endfunction()

gradring_find_nvcc(nvcc)
gradring_nvcc_fault("${nvcc}" GRADRING_CUDA_MISSING)
if(NOT GRADRING_CUDA_MISSING)
  set(ENV{CUDACXX} ${nvcc})
  if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
    set(ENV{CUDAHOSTCXX} ${CMAKE_CXX_COMPILER})  # one host compiler for both halves of the program
  endif()
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    unset(CMAKE_CUDA_COMPILER CACHE)  # so that the next configure looks again
    set(GRADRING_CUDA_MISSING
      "${nvcc} cannot compile with $ENV{CUDAHOSTCXX} (see CMakeFiles/CMakeError.log, or CMakeConfigureLog.yaml of CMake 3.26 and later): name another by CUDAHOSTCXX")
  endif()
endif()

if(GRADRING_CUDA_MISSING)
  if(GRADRING_CUDA STREQUAL ON)
    message(FATAL_ERROR "GRADRING_CUDA is ON, but ${GRADRING_CUDA_MISSING}")
  endif()
  return()
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  # As machine code; and as PTX, which the driver translates for what comes after, and a simulated GPU executes.
  set(CMAKE_CUDA_ARCHITECTURES 80 90 CACHE STRING "Compute capabilities to build for, or native")
endif()
if(GRADRING_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${gradring_ccache} ${GRADRING_CCACHE})
endif()
enable_language(CUDA)
# nvcc's options for LZ4, which simulated GPUs read without libzstd too: 12.8 and later compress by Zstandard.
set(GRADRING_LZ4_OPTIONS)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  set(GRADRING_LZ4_OPTIONS --compress-mode=speed)
endif()
find_package(CUDAToolkit REQUIRED)
find_package(CUDNN 9 QUIET)
find_package(NCCL 2.28.9 QUIET)  # of the headers, which have ncclCommRevoke; an older library will do
set(GRADRING_HAVE_CUDA ON)
