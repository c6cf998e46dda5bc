# SPDX-License-Identifier: Apache-2.0
# With GRADRING_DEBIAN, cpack makes the packages gradring, gradring-dev and, where CUDA was built, gradring-cuda, for the Debian
# that it runs on. Dates come from SOURCE_DATE_EPOCH, which scripts/package.sh sets.

if(NOT GRADRING_DEBIAN)
  return()
endif()
set(GRADRING_MAINTAINER "gradring maintainers <maintainers@gradring.example>" CACHE STRING "Maintainer of the .deb packages")

# A package of one release of Debian depends on that release's libraries, and an upgrade of Debian brings the next one's.
cmake_host_system_information(RESULT release QUERY DISTRIB_INFO)
set(revision 1~${release_ID}${release_VERSION_ID})
set(version ${PROJECT_VERSION}-${revision})
set(components program dev)
if(TARGET gradring_cuda)
  list(APPEND components cuda)
endif()

# gradring_debian_documents(program gradring): the copyright and the changelog that every package has.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
function(gradring_debian_documents component package)
  set(changelog ${PROJECT_BINARY_DIR}/debian/${package}/changelog.Debian)
  file(CONFIGURE OUTPUT ${changelog} @ONLY CONTENT [[gradring (@version@) unstable; urgency=medium

  * Packaged by scripts/package.sh.

 -- @GRADRING_MAINTAINER@  @date@
]])
  execute_process(COMMAND gzip -9 --no-name --force --keep ${changelog} COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${PROJECT_SOURCE_DIR}/scripts/package/debian/copyright ${changelog}.gz
    DESTINATION share/doc/${package} COMPONENT ${component})
endfunction()
gradring_debian_documents(program gradring)
gradring_debian_documents(dev gradring-dev)
if(cuda IN_LIST components)
  gradring_debian_documents(cuda gradring-cuda)
endif()

set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_NAME gradring)
set(CPACK_PACKAGE_CONTACT ${GRADRING_MAINTAINER})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${revision})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME gradring)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "curl, ca-certificates")  # used by gradring data fetch
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "data-parallel trainer for ConvNets
Trains convolutional networks on one or many ranks, on CPUs or, with the
package gradring-cuda, on NVIDIA GPUs. Includes a launcher with torchrun's
options, ring all-reduce over shared memory and TCP, ZeRO, checkpoints that
PyTorch reads, and benchmarks. Needs no Python.

Needs an x86-64-v2 processor (SSE4.2).")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME gradring-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${GRADRING_DEV_DEPENDS}")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "gradring (= ${version}), cmake, pkg-config")
set(CPACK_DEBIAN_DEV_DESCRIPTION "data-parallel trainer for ConvNets - C++ API
Headers and a static library, with which a C++20 program trains a model of its
own on data of its own, on one or many ranks; found by CMake and pkg-config.")

set(CPACK_DEBIAN_CUDA_PACKAGE_NAME gradring-cuda)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "gradring (= ${version})")
set(CPACK_DEBIAN_CUDA_DESCRIPTION "data-parallel trainer for ConvNets - CUDA module
Lets gradring train on NVIDIA GPUs. The module loads the NVIDIA driver, cuDNN,
cuBLASLt and NCCL at run time; \"gradring doctor\" reports which were found.")
include(CPack)
