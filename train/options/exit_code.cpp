// SPDX-License-Identifier: Apache-2.0
#include "train/options/exit_code.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <new>
#include <system_error>
#include <typeinfo>

#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "kernels/base/process_limit.h"
#include "train/options/file_advice.h"

namespace gradring::train {
namespace {

constexpr ExitCodeRow kTable[] = {
    {kOk, "success"},
    {kTrainingFailed, "training failed"},
    {kUsage, "usage error"},
    {kEnvironment, "environment: no such device, out of memory, output that cannot be written"},
    {kBadData, "invalid data or checkpoint"},
    {kDiverged, "training diverged"},
    {kCannotExecute, "the program cannot be executed"},
    {kNotFound, "the program was not found"},
    {128 + SIGINT, "Ctrl-C"},
    {128 + SIGQUIT, "SIGQUIT to the launcher (--nprocs) after a checkpoint"},
    {kBrokenPipe, "the reader closed standard output"},
    {kPreempted, "stopped by SIGTERM, SIGHUP or SIGUSR1 after a checkpoint"},
    {kPeerLost, "a rank was lost"},
    {kTimeout, "a rank timed out or never started"},
    {kReplicasDiffer, "the ranks differ: in options, data, program or weights"}};

std::string_view meaning_of(int code) {
  const auto* const row = std::ranges::find(kTable, code, &ExitCodeRow::code);
  return row == std::end(kTable) ? std::string_view() : row->meaning;
}

template <class E>
bool is(const std::exception& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

bool has_current_folder() {
  std::error_code error;
  static_cast<void>(std::filesystem::current_path(error));
  return !error;
}

}  // namespace

std::span<const ExitCodeRow> exit_code_table() { return kTable; }

std::string exit_codes_text(std::initializer_list<ExitCodeRow> rows) {
  std::string text = "Exit codes:\n";
  for (const auto& [code, meaning] : rows)
    text += fmt::format("  {:>3}  {}\n", code < 0 ? "N" : std::to_string(code),
                        meaning.empty() ? meaning_of(code) : meaning);
  return text;
}

std::string own_meaning_of(int code) {
  return code < kPeerLost || meaning_of(code).empty() ? "" : fmt::format(": {}", meaning_of(code));
}

ExitCode exit_code_of(const std::exception& error) {
  if (const auto* own = dynamic_cast<const HasExitCode*>(&error)) return own->exit_code();
  if (is<DeviceError>(error) || is<std::bad_alloc>(error) || is<std::system_error>(error)) return kEnvironment;
  if (is<InvalidArgument>(error)) return kUsage;
  return kTrainingFailed;
}

std::string message_of(const std::exception& error) {
  if (is<std::bad_alloc>(error)) return "out of memory: lower --batch-size, or start fewer ranks";
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  const bool has_no_path = typeid(error) == typeid(std::system_error);  // as std::thread's
  if (has_no_path && system->code() == std::errc::resource_unavailable_try_again)
    return fmt::format(
        "cannot start a thread: too many processes and threads, or too little memory ({}); raise that "
        "limit, or lower --threads",
        process_limits());
  const bool has_no_folder = dynamic_cast<const std::filesystem::filesystem_error*>(&error) && !has_current_folder();
  if (has_no_folder) return "the current directory was removed: change to another one (cd), and try again";
  return error.what();
}

/// fmt throws std::system_error itself; a class that is derived from it comes from elsewhere.
bool is_output_failure(const std::exception& error) {
  return std::ferror(stdout) != 0 && typeid(error) == typeid(std::system_error);
}

void flush_standard_output() {
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "cannot write standard output");
}

int finish_standard_output(int code, const std::exception* failure) {
  const auto* reported = dynamic_cast<const std::system_error*>(failure);
  int error = reported != nullptr ? reported->code().value() : 0;
  const bool lost_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) != 0 && error == 0) error = errno;
  if (error == 0 && !lost_before) return code;
  if (error != EPIPE)
    print_to_stderr(fmt::format("gradring: cannot write standard output{}{}; the result is incomplete: {}\n",
                                error != 0 ? ": " : "", error != 0 ? std::generic_category().message(error) : "",
                                advice_on(error, "file")));
  std::clearerr(stdout);  // reported above
  if (code != kOk) return code;
  return error == EPIPE ? kBrokenPipe : kEnvironment;
}

}  // namespace gradring::train
