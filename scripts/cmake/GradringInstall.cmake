# SPDX-License-Identifier: Apache-2.0
# cmake --install BUILD --prefix FOLDER: one folder that may be moved. The program finds the CUDA module in ../lib, from where
# it lies itself, and nothing else.

install(TARGETS gradring RUNTIME DESTINATION bin)
install(CODE "file(CREATE_LINK gradring \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/gradrun\" SYMBOLIC)")
if(TARGET gradring_cuda)
  install(TARGETS gradring_cuda LIBRARY DESTINATION lib)
endif()
install(FILES README.md DESTINATION share/doc/gradring)
install(DIRECTORY docs DESTINATION share/doc/gradring)
