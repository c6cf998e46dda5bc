# SPDX-License-Identifier: Apache-2.0
# Finds oneDNN 2.x or 3.x by its header and library. Debian 12's own config file demands OpenCL and aborts without it.
# Result: DNNL_FOUND, DNNL_VERSION, the target DNNL::dnnl. Hint: DNNL_ROOT.

include(GradringHeaderVersion)
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
if(DNNL_INCLUDE_DIR)
  gradring_header_version(DNNL_VERSION ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h
    DNNL_VERSION_MAJOR DNNL_VERSION_MINOR DNNL_VERSION_PATCH)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(DNNL REQUIRED_VARS DNNL_LIBRARY DNNL_INCLUDE_DIR
  VERSION_VAR DNNL_VERSION HANDLE_VERSION_RANGE)
mark_as_advanced(DNNL_INCLUDE_DIR DNNL_LIBRARY)
if(DNNL_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES
    IMPORTED_LOCATION ${DNNL_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
endif()
