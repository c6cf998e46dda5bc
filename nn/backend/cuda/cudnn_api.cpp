// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cudnn_api.h"

#include <algorithm>
#include <array>

namespace gradring::nn {
namespace {

cudnnBackendDescriptor_t created(const CudnnApi& api, cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t handle = nullptr;
  cudnn_check(api, api.create_descriptor(type, &handle), "cudnnBackendCreateDescriptor");
  return handle;
}

}  // namespace

CudnnApi CudnnApi::load() { return {.from = LibraryFunctions("libcudnn.so." + std::to_string(CUDNN_MAJOR))}; }

void cudnn_check(const CudnnApi& api, cudnnStatus_t status, std::string_view call, std::source_location where) {
  const auto message = [&] {
    std::array<char, 512> text{};
    api.get_last_error_string(text.data(), text.size());
    const std::string failed = std::string(call) + " failed: " + api.get_error_string(status);
    return text[0] == '\0' ? failed : failed + ", " + text.data();
  };
  check<DeviceError>(status == CUDNN_STATUS_SUCCESS, message, where);
}

CudnnDescriptor::CudnnDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type)
    : handle_(created(api, type), Destroy{&api}) {}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                      std::int64_t count, const void* values) {
  cudnn_check(api(), api().set_attribute(get(), name, type, count, values), "cudnnBackendSetAttribute");
  return *this;
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  return set(name, std::span(&value, 1));
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
  return set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const CudnnDescriptor> values) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const CudnnDescriptor& value : values) handles.push_back(value.get());
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(handles.size()), handles.data());
}

CudnnDescriptor& CudnnDescriptor::finalize() {
  cudnn_check(api(), api().finalize(get()), "cudnnBackendFinalize");
  return *this;
}

bool CudnnDescriptor::try_finalize() { return api().finalize(get()) == CUDNN_STATUS_SUCCESS; }

std::int64_t CudnnDescriptor::int64(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  std::int64_t count = 0;
  cudnn_check(api(), api().get_attribute(get(), name, CUDNN_TYPE_INT64, 1, &count, &value), "cudnnBackendGetAttribute");
  return value;
}

std::vector<cudnnBackendNumericalNote_t> CudnnDescriptor::numerical_notes() const {
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  std::int64_t count = 0;
  cudnn_check(api(),
              api().get_attribute(get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                  static_cast<std::int64_t>(notes.size()), &count, notes.data()),
              "cudnnBackendGetAttribute");
  notes.resize(std::min(notes.size(), static_cast<std::size_t>(count)));
  return notes;
}

std::int64_t CudnnDescriptor::result_count() const {
  std::int64_t count = 0;
  cudnn_check(
      api(),
      api().get_attribute(get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
      "cudnnBackendGetAttribute");
  return count;
}

std::vector<CudnnDescriptor> CudnnDescriptor::descriptors(cudnnBackendAttributeName_t name,
                                                          cudnnBackendDescriptorType_t type, std::int64_t most) const {
  std::vector<CudnnDescriptor> filled;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < most; ++i) handles.push_back(filled.emplace_back(api(), type).get());
  std::int64_t count = 0;
  cudnn_check(api(), api().get_attribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count, handles.data()),
              "cudnnBackendGetAttribute");
  filled.erase(filled.begin() + std::min(count, most), filled.end());
  return filled;
}

}  // namespace gradring::nn
