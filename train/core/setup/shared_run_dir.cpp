// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/shared_run_dir.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "train/options/file_advice.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Equal in processes for which a path names the same file: those of one mount namespace of one running kernel. Empty
/// if it is not known.
std::string view_of_files() try {
  constexpr std::size_t kMostBytes = 256;
  return read_small_file("/proc/sys/kernel/random/boot_id", kMostBytes) +
         fs::read_symlink("/proc/self/ns/mnt").string();
} catch (const std::exception&) {
  return {};
}

/// The bytes of a path as numbers, since a path need not be UTF-8 as JSON's strings are.
Json bytes_of(const fs::path& path) { return std::vector<std::uint8_t>(path.native().begin(), path.native().end()); }

fs::path path_of(const Json& bytes) {
  const auto values = bytes.get<std::vector<std::uint8_t>>();
  return std::string(values.begin(), values.end());
}

std::pair<std::uint64_t, std::uint64_t> numbers_of(const Directory& directory) {
  struct stat facts {};
  ::fstat(directory.fd().get(), &facts);
  return {facts.st_dev, facts.st_ino};
}

}  // namespace

std::string identity_of(const Directory& run_dir) {
  const fs::path now = run_dir.current_path();
  return Json{{"path", bytes_of(now.empty() ? run_dir.path() : now)},
              {"view", view_of_files()},
              {"numbers", numbers_of(run_dir)}}
      .dump();
}

Directory open_identified(const std::string& identity) {
  const Json rank_0 = Json::parse(identity);
  const fs::path path = path_of(rank_0.at("path"));
  const auto view = rank_0.at("view").get<std::string>();
  const bool is_shared = !view.empty() && view == view_of_files();
  std::error_code error;
  if (!is_shared) fs::create_directories(path, error);
  Directory directory(path);
  if (const int reason = errno; !directory)
    throw EnvironmentError("cannot open the run directory " + path.string() + ": " +
                           std::generic_category().message(reason) + "; " + advice_on(reason, "--run-dir"));
  if (is_shared && rank_0.at("numbers") != Json(numbers_of(directory)))
    throw EnvironmentError("the run directory " + path.string() +
                           " is not the one that rank 0 has locked: it was moved or removed while the run started; "
                           "start it again");
  return directory;
}

bool names_identified(const fs::path& path, const std::string& identity) {
  const Json known = Json::parse(identity, nullptr, false);
  if (!known.is_object() || known.value("view", "") != view_of_files()) return true;
  const Directory directory(path);
  return directory && known.value("numbers", Json()) == Json(numbers_of(directory));
}

}  // namespace gradring::train
