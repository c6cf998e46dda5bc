# SPDX-License-Identifier: Apache-2.0

# gradring_nvidia_roots(out): the folders in which pip and conda unpack NVIDIA's wheels. Each holds include/ and lib/, one
# for the toolkit (cu13), one per library (cudnn, nccl); the libraries there have a version in their name and no plain .so.
function(gradring_nvidia_roots out)
  set(roots "")
  foreach(prefix $ENV{VIRTUAL_ENV} $ENV{CONDA_PREFIX} $ENV{HOME}/.local)
    file(GLOB wheels LIST_DIRECTORIES true ${prefix}/lib/python3*/site-packages/nvidia/*)
    list(APPEND roots ${wheels})
  endforeach()
  if(DEFINED ENV{CONDA_PREFIX})
    list(APPEND roots $ENV{CONDA_PREFIX} $ENV{CONDA_PREFIX}/targets/x86_64-linux)
  endif()
  set(${out} ${roots} PARENT_SCOPE)
endfunction()
