// SPDX-License-Identifier: Apache-2.0
#include "train/cli/exit_code.h"

#include <new>
#include <system_error>

#include "kernels/runtime/error.h"

namespace gradring::train {
namespace {

template <class E>
bool is(const std::exception& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

}  // namespace

ExitCode exit_code_of(const std::exception& error) {
  if (const auto* own = dynamic_cast<const HasExitCode*>(&error)) return own->exit_code();
  if (is<DeviceError>(error) || is<std::bad_alloc>(error) || is<std::system_error>(error)) return kEnvironment;
  if (is<InvalidArgument>(error)) return kUsage;
  return kTrainingFailed;
}

std::string message_of(const std::exception& error) {
  if (is<std::bad_alloc>(error)) return "there is not enough memory: lower --batch-size, or start fewer ranks";
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  const bool has_no_path = typeid(error) == typeid(std::system_error);  // as std::thread's
  if (has_no_path && system->code() == std::errc::resource_unavailable_try_again)
    return "cannot start a thread: too little memory or too many processes; raise ulimit -v or -u, or lower --threads";
  return error.what();
}

}  // namespace gradring::train
