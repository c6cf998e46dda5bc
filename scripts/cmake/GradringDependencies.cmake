# SPDX-License-Identifier: Apache-2.0
# Finds what is needed and what may be there; sets GRADRING_HAVE_ONEDNN and GRADRING_HAVE_CUDA.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)

set(GRADRING_HAVE_ONEDNN OFF)
if(NOT GRADRING_ONEDNN STREQUAL OFF)
  find_package(DNNL)
  if(DNNL_FOUND)
    set(GRADRING_HAVE_ONEDNN ON)
  elseif(GRADRING_ONEDNN STREQUAL ON)
    message(FATAL_ERROR "GRADRING_ONEDNN is ON but oneDNN was not found: install libdnnl-dev, or set DNNL_ROOT")
  endif()
endif()

set(GRADRING_HAVE_CUDA OFF)
if(NOT GRADRING_CUDA STREQUAL OFF)
  include(GradringCuda)
endif()
