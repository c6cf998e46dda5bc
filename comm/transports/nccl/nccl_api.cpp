// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/nccl_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "kernels/base/error.h"

namespace gradring::comm::nccl {
namespace {

constexpr const char* kAdvice =
    "install NCCL 2.19 or later (package libnccl2, or pip package nvidia-nccl), or add its folder to LD_LIBRARY_PATH; "
    "or use --comm tcp";

class Library {
 public:
  explicit Library(const std::string& file) : file_(file), handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) throw DeviceError(fmt::format("cannot load NCCL: {}: {}", ::dlerror(), kAdvice));
  }

  template <class Function>
  void find(const char* name, std::function<Function>& entry) const {
    auto* const address = reinterpret_cast<Function*>(::dlsym(handle_, name));
    if (!address) throw DeviceError(fmt::format("{} has no symbol {}: {}", file_, name, kAdvice));
    entry = address;
  }
  /// Leaves the entry empty if the library is too old to have the function.
  template <class Function>
  void find_optional(const char* name, std::function<Function>& entry) const {
    if (auto* const address = reinterpret_cast<Function*>(::dlsym(handle_, name))) entry = address;
  }

 private:
  std::string file_;
  void* handle_;
};

}  // namespace

Api load_library(const std::string& file) {
  const Library library(file);
  Api api;
  library.find("ncclGetVersion", api.get_version);
  library.find("ncclGetErrorString", api.get_error_string);
  library.find("ncclGetLastError", api.get_last_error);
  library.find("ncclGetUniqueId", api.get_unique_id);
  library.find("ncclCommInitRankConfig", api.comm_init_rank_config);
  library.find("ncclCommGetAsyncError", api.comm_get_async_error);
  library.find("ncclCommFinalize", api.comm_finalize);
  library.find("ncclCommDestroy", api.comm_destroy);
  library.find("ncclCommAbort", api.comm_abort);
  library.find_optional("ncclCommRevoke", api.comm_revoke);
  library.find("ncclGroupStart", api.group_start);
  library.find("ncclGroupEnd", api.group_end);
  library.find("ncclSend", api.send);
  library.find("ncclRecv", api.recv);
  library.find("ncclAllReduce", api.all_reduce);
  return api;
}

Api load_simulated() {
  Dl_info module{};
  ::dladdr(reinterpret_cast<const void*>(&load_simulated), &module);
  return load_library(module.dli_fname);
}

std::string describe_error(const Api& api, ncclResult_t result, ncclComm_t comm) {
  const char* const last = api.get_last_error(comm);
  const std::string text = api.get_error_string(result);
  return last && *last ? text + ": " + last : text;
}

}  // namespace gradring::comm::nccl
