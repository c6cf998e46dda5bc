// SPDX-License-Identifier: Apache-2.0
// A profiler for NVTX, which loads the library that NVTX_INJECTION64_PATH names: appends the ranges of a process to the
// file that GRADRING_NVTX_FILE names, a line for each as "DOMAIN CATEGORY PAYLOAD DEPTH THREAD NAME".
//
// Source: "NVTX Tool Developer Guide" and nvtx3/nvtxDetail/nvtxTypes.h: InitializeInjectionNvtx2.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace {

struct Recorder {
  std::mutex mutex;
  std::string domain;
  std::map<std::uint32_t, std::string> categories;
  std::map<std::thread::id, int> depths;
};

Recorder& recorder() {
  static Recorder& recorder = *new Recorder;
  return recorder;
}

nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  const std::lock_guard lock(recorder().mutex);
  recorder().domain = name;
  return reinterpret_cast<nvtxDomainHandle_t>(&recorder());
}

void NVTX_API name_category(nvtxDomainHandle_t, std::uint32_t id, const char* name) {
  const std::lock_guard lock(recorder().mutex);
  recorder().categories[id] = name;
}

int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
  Recorder& self = recorder();
  const std::lock_guard lock(self.mutex);
  const char* const path = std::getenv("GRADRING_NVTX_FILE");
  std::FILE* const file = path ? std::fopen(path, "a") : nullptr;
  int& depth = self.depths[std::this_thread::get_id()];
  if (file) {
    std::string payload = "-";
    if (range->payloadType == NVTX_PAYLOAD_TYPE_INT64) payload = std::to_string(range->payload.llValue);
    const bool known = domain == reinterpret_cast<nvtxDomainHandle_t>(&self) && range->version == NVTX_VERSION;
    std::fprintf(file, "%s %s %s %d %zu %s\n", known ? self.domain.c_str() : "unknown",
                 self.categories[range->category].c_str(), payload.c_str(), depth,
                 std::hash<std::thread::id>()(std::this_thread::get_id()),
                 range->messageType == NVTX_MESSAGE_TYPE_ASCII ? range->message.ascii : "?");
    std::fclose(file);
  }
  return depth++;
}

int NVTX_API pop(nvtxDomainHandle_t) {
  const std::lock_guard lock(recorder().mutex);
  return --recorder().depths[std::this_thread::get_id()];
}

template <class Function>
void set(NvtxFunctionTable table, unsigned size, int id, Function* function) {
  if (static_cast<unsigned>(id) < size) *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  set(table, size, NVTX_CBID_CORE2_DomainCreateA, &create_domain);
  set(table, size, NVTX_CBID_CORE2_DomainNameCategoryA, &name_category);
  set(table, size, NVTX_CBID_CORE2_DomainRangePushEx, &push);
  set(table, size, NVTX_CBID_CORE2_DomainRangePop, &pop);
  return 1;
}
