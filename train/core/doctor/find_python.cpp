// SPDX-License-Identifier: Apache-2.0
#include "train/core/doctor/find_python.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "kernels/base/child_process.h"
#include "kernels/base/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// The first import of torch from a cold disk is slow.
constexpr std::chrono::seconds kPatience(120);
constexpr const char* kProbe = "import torch; print('torch', torch.__version__, flush=True)";

/// Every python3 on PATH, each folder once. Does not resolve links to files: a virtual environment's python3 links to
/// one that does not see its packages.
std::vector<std::string> pythons_along(const std::string& path) {
  std::vector<std::string> found;
  std::vector<fs::path> seen;
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code missing;
    const fs::path real = fs::canonical(folder, missing);
    if (missing || std::ranges::find(seen, real) != seen.end()) continue;
    seen.push_back(real);
    const std::string python = (fs::path(folder) / "python3").string();
    if (::access(python.c_str(), X_OK) == 0) found.push_back(python);
  }
  return found;
}

/// The version of torch; nullopt if it cannot be imported.
std::optional<std::string> torch_version(const std::string& python) {
  try {
    ChildCommand command;
    command.words = {python, "-c", kProbe};
    ChildProcess child(command);
    const std::string answer = child.read_line(Deadline::after(kPatience));
    if (answer.starts_with("torch ")) return answer.substr(sizeof "torch");
  } catch (const DeviceError&) {  // it cannot be started, or ended without an answer
  }
  return std::nullopt;
}

}  // namespace

PythonSearch search_python_with_torch(const VariableLookup& lookup) {
  std::vector<std::string> candidates = pythons_along(lookup("PATH").value_or(""));
  if (const auto chosen = lookup("GRADRING_PYTHON")) candidates.insert(candidates.begin(), *chosen);
  PythonSearch search;
  for (const std::string& python : candidates) {
    if (const auto version = torch_version(python)) {
      search.python = python;
      search.torch_version = *version;
      break;
    }
    search.tried.push_back(python + ": does not import torch");
  }
  return search;
}

std::string PythonSearch::to_string() const {
  if (python) return fmt::format("{} with torch {}", *python, torch_version);
  return fmt::format(
      "no Python that imports torch was found ({}); install PyTorch (Debian: python3-torch), or set GRADRING_PYTHON to "
      "a python3 that has it",
      tried.empty() ? "no python3 along PATH" : fmt::format("{}", fmt::join(tried, "; ")));
}

}  // namespace gradring::train
