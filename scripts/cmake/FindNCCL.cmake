# SPDX-License-Identifier: Apache-2.0
# Finds the headers of NCCL 2, which the program opens at run time: NVIDIA's packages, beside the toolkit, or pip's wheel.
# Result: NCCL_FOUND, NCCL_VERSION, NCCL_INCLUDE_DIR. Hints: NCCL_ROOT, NCCL_HOME.

include(GradringHeaderVersion)
include(GradringNvidiaRoots)
gradring_nvidia_roots(roots)
set(hints ${NCCL_HOME} $ENV{NCCL_HOME} ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR})
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${hints} PATHS ${roots} PATH_SUFFIXES include)
if(NCCL_INCLUDE_DIR)
  gradring_header_version(NCCL_VERSION ${NCCL_INCLUDE_DIR}/nccl.h NCCL_MAJOR NCCL_MINOR NCCL_PATCH)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
mark_as_advanced(NCCL_INCLUDE_DIR)
