// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/plan_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "kernels/base/directory.h"

namespace gradring::nn {
namespace {

using Machines = std::map<std::string, std::map<std::string, std::string>>;

constexpr std::size_t kMaxBytes = 16u << 20;

Machines read(const std::filesystem::path& file) {
  try {
    return nlohmann::json::parse(read_regular_file(file, kMaxBytes).value_or("")).get<Machines>();
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

void write(const std::filesystem::path& file, const Machines& machines) {
  std::error_code ignored;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
  const std::filesystem::path unfinished = file.string() + "." + std::to_string(::getpid());
  const UniqueFd opened = open_file(unfinished, O_WRONLY | O_CREAT | O_EXCL);
  if (opened && write_all(opened.get(), nlohmann::json(machines).dump(1) + "\n") == 0)
    std::filesystem::rename(unfinished, file, ignored);
  else
    std::filesystem::remove(unfinished, ignored);
}

}  // namespace

PlanCache::PlanCache(std::filesystem::path file, std::string machine)
    : file_(std::move(file)), machine_(std::move(machine)) {
  if (!file_.empty()) plans_ = read(file_)[machine_];
}

std::optional<std::string> PlanCache::find(const std::string& key) const {
  const auto found = plans_.find(key);
  return found == plans_.end() ? std::nullopt : std::optional(found->second);
}

void PlanCache::store(const std::string& key, const std::string& name) {
  plans_[key] = name;
  if (file_.empty()) return;
  Machines machines = read(file_);  // keeps what other processes stored meanwhile
  machines[machine_][key] = name;
  write(file_, machines);
}

}  // namespace gradring::nn
