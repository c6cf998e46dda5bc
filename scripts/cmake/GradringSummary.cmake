# SPDX-License-Identifier: Apache-2.0
# One table at the end of configuring: what this build will have, and what would add the rest.

message(STATUS "gradring ${PROJECT_VERSION}")
message(STATUS "  build type  ${CMAKE_BUILD_TYPE}, -march=${GRADRING_ARCH}")
if(GRADRING_SANITIZE)
  message(STATUS "  sanitizer   ${GRADRING_SANITIZE}")
endif()
if(GRADRING_HAVE_ONEDNN)
  message(STATUS "  oneDNN      ${DNNL_VERSION} (${DNNL_LIBRARY})")
else()
  message(STATUS "  oneDNN      no: convolutions and products on the CPU run our own kernels, slowly; install libdnnl-dev")
endif()
if(GRADRING_HAVE_CUDA)
  message(STATUS "  CUDA        ${CMAKE_CUDA_COMPILER_VERSION} (${CMAKE_CUDA_COMPILER})")
else()
  message(STATUS "  CUDA        no: ${GRADRING_CUDA_MISSING}")
endif()
message(STATUS "  tests       ${GRADRING_TESTS}")
