// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cudnn_api.h"

#include <array>

#include "kernels/runtime/shared_library.h"

namespace gradring::nn {

CudnnApi CudnnApi::load() {
  const SharedLibrary library("libcudnn.so." + std::to_string(CUDNN_MAJOR), nvidia_library_folders());
  CudnnApi api;
  library.find("cudnnGetVersion", api.get_version);
  library.find("cudnnGetErrorString", api.get_error_string);
  library.find("cudnnGetLastErrorString", api.get_last_error_string);
  library.find("cudnnCreate", api.create);
  library.find("cudnnDestroy", api.destroy);
  library.find("cudnnSetStream", api.set_stream);
  library.find("cudnnBackendCreateDescriptor", api.create_descriptor);
  library.find("cudnnBackendDestroyDescriptor", api.destroy_descriptor);
  library.find("cudnnBackendFinalize", api.finalize);
  library.find("cudnnBackendSetAttribute", api.set_attribute);
  library.find("cudnnBackendGetAttribute", api.get_attribute);
  library.find("cudnnBackendExecute", api.execute);
  return api;
}

void cudnn_check(const CudnnApi& api, cudnnStatus_t status, std::string_view call, std::source_location where) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  std::array<char, 512> words{};
  api.get_last_error_string(words.data(), words.size());
  std::string message = std::string(call) + " failed: " + api.get_error_string(status);
  if (words[0] != '\0') message += std::string(", ") + words.data();
  throw CudnnError(status, message + " [" + where.file_name() + ":" + std::to_string(where.line()) + "]");
}

}  // namespace gradring::nn
