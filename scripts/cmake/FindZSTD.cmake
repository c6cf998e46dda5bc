# SPDX-License-Identifier: Apache-2.0
# Finds libzstd by its header and library: not every distribution installs its config file.
# Result: ZSTD_FOUND, ZSTD_VERSION, the target ZSTD::ZSTD. Hints: ZSTD_ROOT; ZSTD_USE_STATIC_LIBS takes the archive alone.

include(GradringHeaderVersion)
find_path(ZSTD_INCLUDE_DIR zstd.h)
set(names zstd)
if(ZSTD_USE_STATIC_LIBS)
  set(names libzstd.a)
endif()
find_library(ZSTD_LIBRARY NAMES ${names})
if(ZSTD_INCLUDE_DIR)
  gradring_header_version(ZSTD_VERSION ${ZSTD_INCLUDE_DIR}/zstd.h ZSTD_VERSION_MAJOR ZSTD_VERSION_MINOR ZSTD_VERSION_RELEASE)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZSTD REQUIRED_VARS ZSTD_LIBRARY ZSTD_INCLUDE_DIR VERSION_VAR ZSTD_VERSION)
mark_as_advanced(ZSTD_INCLUDE_DIR ZSTD_LIBRARY)
if(ZSTD_FOUND AND NOT TARGET ZSTD::ZSTD)
  add_library(ZSTD::ZSTD UNKNOWN IMPORTED)
  set_target_properties(ZSTD::ZSTD PROPERTIES
    IMPORTED_LOCATION ${ZSTD_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${ZSTD_INCLUDE_DIR})
endif()
