# SPDX-License-Identifier: Apache-2.0
# Finds the headers of cuDNN 9, which the program opens at run time: NVIDIA's packages, beside the toolkit, or pip's wheel.
# Result: CUDNN_FOUND, CUDNN_VERSION, CUDNN_INCLUDE_DIR. Hints: CUDNN_ROOT, CUDNN_PATH.

include(GradringHeaderVersion)
include(GradringNvidiaRoots)
gradring_nvidia_roots(roots)
set(hints ${CUDNN_PATH} $ENV{CUDNN_PATH} ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR})
find_path(CUDNN_INCLUDE_DIR cudnn_version.h HINTS ${hints} PATHS ${roots} PATH_SUFFIXES include)
if(CUDNN_INCLUDE_DIR)
  gradring_header_version(CUDNN_VERSION ${CUDNN_INCLUDE_DIR}/cudnn_version.h CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_INCLUDE_DIR VERSION_VAR CUDNN_VERSION)
mark_as_advanced(CUDNN_INCLUDE_DIR)
