// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/plan_cache.h"

#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace gradring::nn {
namespace {

using Machines = std::map<std::string, std::map<std::string, std::string>>;

Machines read(const std::filesystem::path& file) {
  try {
    return nlohmann::json::parse(std::ifstream(file)).get<Machines>();
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

void write(const std::filesystem::path& file, const Machines& machines) {
  std::error_code ignored;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
  const std::filesystem::path unfinished = file.string() + "." + std::to_string(::getpid());
  const bool written = static_cast<bool>(std::ofstream(unfinished) << nlohmann::json(machines).dump(1) << "\n"
                                                                   << std::flush);
  if (written)
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
