// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cupti.h>

#include <source_location>
#include <string>
#include <string_view>

namespace gradring::kernels {

/// The functions of CUPTI's activity interface that we call, looked up when a trace begins. Nothing links CUPTI.
struct CuptiApi {
  /// CUDA 12.0's. The records that we read begin alike in every version from 11.1 to 13.0: later ones append.
  static constexpr std::uint32_t kOldestVersion = 19;

  decltype(&::cuptiGetVersion) get_version = nullptr;
  decltype(&::cuptiGetResultString) get_result_string = nullptr;
  decltype(&::cuptiGetTimestamp) get_timestamp = nullptr;
  decltype(&::cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&::cuptiActivityEnable) enable = nullptr;
  decltype(&::cuptiActivityDisable) disable = nullptr;
  decltype(&::cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&::cuptiActivityGetNextRecord) get_next_record = nullptr;
  decltype(&::cuptiActivityGetNumDroppedRecords) get_num_dropped = nullptr;

  /// libcupti of this build's major version of CUDA, else of another that we know.
  ///
  /// Errors    DeviceError if it is missing, older than kOldestVersion, or lacks a function; says what to install.
  static CuptiApi load();
  /// From one file; as load().
  static CuptiApi open(const std::string& file);
};

/// Throws unless `result` is CUPTI_SUCCESS. `call` is the name of the function that returned it.
///
/// Errors    DeviceError: the call, CUPTI's text for the error, and the caller's location.
void cupti_check(const CuptiApi& api, CUptiResult result, std::string_view call,
                 std::source_location where = std::source_location::current());

}  // namespace gradring::kernels
