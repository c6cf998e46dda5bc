# SPDX-License-Identifier: Apache-2.0
# Toolchain file: Debian's cross compiler for aarch64. GRADRING_SYSROOT is a folder with Debian's arm64 libraries; programs run
# under qemu-aarch64 (package qemu-user).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
if(NOT GRADRING_SYSROOT)
  message(FATAL_ERROR "GRADRING_SYSROOT is empty: set it to a folder with Debian's arm64 libraries (docs/building.md)")
endif()
get_filename_component(GRADRING_SYSROOT "${GRADRING_SYSROOT}" ABSOLUTE)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES GRADRING_SYSROOT)
set(CMAKE_SYSROOT ${GRADRING_SYSROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${GRADRING_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
