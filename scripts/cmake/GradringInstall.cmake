# SPDX-License-Identifier: Apache-2.0
# cmake --install BUILD --prefix FOLDER: one folder that may be moved. The program finds the CUDA module relative to itself.
# The components are what CPack makes packages of.

install(TARGETS gradring RUNTIME DESTINATION bin COMPONENT program)
install(CODE "file(CREATE_LINK gradring \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/gradrun\" SYMBOLIC)" COMPONENT program)
if(TARGET gradring_cuda)
  install(TARGETS gradring_cuda LIBRARY DESTINATION ${GRADRING_MODULE_DIR} COMPONENT cuda)
endif()
if(TARGET gradring_simulated_gpu_module)  # of no package: it doubles the size
  install(TARGETS gradring_simulated_gpu_module LIBRARY DESTINATION ${GRADRING_MODULE_DIR} COMPONENT simulated_gpu)
endif()
install(FILES README.md DESTINATION share/doc/gradring COMPONENT program)
install(DIRECTORY docs DESTINATION share/doc/gradring COMPONENT program)
