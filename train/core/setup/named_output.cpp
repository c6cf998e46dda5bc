// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/named_output.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "data/files/byte_source.h"
#include "kernels/base/error.h"
#include "train/core/setup/run_directory.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// Empty if it cannot be read.
std::string head_of(const fs::path& path) try {
  std::string head(kHeadBytes, '\0');
  const std::size_t bytes =
      data::open_plain_or_gzip(path)->read(std::span(reinterpret_cast<std::uint8_t*>(head.data()), head.size()));
  head.resize(bytes);
  return head;
} catch (const Error&) {
  return {};
} catch (const std::system_error&) {
  return {};
}

bool is_run_directory(const fs::path& path) try {
  std::error_code ignored;
  return fs::is_regular_file(metrics_of(path), ignored) || state_of(path) == RunDirState::run;
} catch (const Error&) {
  return false;
}

/// Whether gradring writes `name` into run directories, or anything into a folder of that name.
bool is_name_of_run(const fs::path& run, const fs::path& name) {
  const fs::path path = run / name;
  const std::string text = name.string();
  return path == metrics_of(run) || path == summary_of(run) || path == checkpoints_of(run) ||
         path == tensorboard_of(run) || path == log_file(run, 0).parent_path() || text == kRunLockFile ||
         is_config_name(text);
}

/// The run directory to whose files `path` belongs, whether it exists or not.
std::optional<fs::path> run_that_owns(const fs::path& path) {
  std::error_code ignored;
  fs::path part = fs::weakly_canonical(fs::absolute(path), ignored);
  for (; part.has_relative_path(); part = part.parent_path())
    if (is_name_of_run(part.parent_path(), part.filename()) && is_run_directory(part.parent_path()))
      return part.parent_path();
  return std::nullopt;
}

}  // namespace

void check_output(const NamedOutput& file, Replace replace) {
  if (file.path.empty()) return;
  const auto reject = [&](std::string_view found, std::string_view advice) {
    throw UsageError(fmt::format("{}: {} {}; {}", file.option, file.path.string(), found, advice));
  };
  if (const auto run = run_that_owns(file.path))
    reject(fmt::format("belongs to the run {}", run->string()), "name another file");
  std::error_code ignored;
  const fs::path folder = file.path.parent_path();
  if (!folder.empty() && folder.lexically_normal() != file.created && !fs::exists(folder, ignored))
    reject("is in a folder that does not exist", "create it, or name another file");
  const fs::file_status status = fs::status(file.path, ignored);
  if (fs::is_directory(status)) reject("is a folder", "name a file in it");
  if (!fs::is_regular_file(status) || replace == Replace::any) return;
  if (fs::file_size(file.path, ignored) == 0 || (file.is_ours && file.is_ours(head_of(file.path)))) return;
  reject(file.is_ours ? "exists, and was not written by this command" : "exists", file.advice);
}

Option force_option(Replace& replace) {
  return {.name = "force",
          .help =
              "replacement of any existing file but one of a run; without it, only of an empty one, or one that the "
              "same option wrote before (pages, pictures, JSON, CSV)",
          .read = [&replace](std::string_view) { replace = Replace::any; }};
}

}  // namespace gradring::train
