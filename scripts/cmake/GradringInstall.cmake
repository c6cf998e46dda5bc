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
# What gradring cuda run puts in front of a program's libraries; with the program of that command alone, the component
# cuda_run (package gradring-cuda-run).
if(TARGET gradring_cudart)
  foreach(component cuda cuda_run)
    set(extra "")
    if(component STREQUAL cuda_run)
      set(extra EXCLUDE_FROM_ALL)
    endif()
    install(TARGETS gradring_cudart gradring_libcuda LIBRARY DESTINATION ${GRADRING_MODULE_DIR}/cuda_program COMPONENT ${component} ${extra})
  endforeach()
  install(TARGETS gradring_cuda_program RUNTIME DESTINATION bin COMPONENT cuda_run EXCLUDE_FROM_ALL)
  install(FILES docs/cuda.md docs/cuda.schema.json docs/cuda/reverse.cu DESTINATION share/doc/gradring-cuda-run COMPONENT cuda_run EXCLUDE_FROM_ALL)
endif()
install(FILES README.md DESTINATION share/doc/gradring COMPONENT program)
install(DIRECTORY docs DESTINATION share/doc/gradring COMPONENT program)
