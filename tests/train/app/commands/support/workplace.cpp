// SPDX-License-Identifier: Apache-2.0
#include "tests/train/app/commands/support/workplace.h"

#include <sstream>

#include <algorithm>

#include "tests/data/support/written_idx.h"

namespace gradring::tests {

const char* const kTrainImages = "train-images-idx3-ubyte";
const char* const kTrainLabels = "train-labels-idx1-ubyte";
const char* const kTestImages = "t10k-images-idx3-ubyte";
const char* const kTestLabels = "t10k-labels-idx1-ubyte";

namespace {

constexpr std::uint32_t kSide = 28;

void write_split(const TempFolder& folder, const char* images, const char* labels, std::uint32_t count) {
  Bytes digits(count);
  for (std::uint32_t i = 0; i < count; ++i) digits[i] = static_cast<std::uint8_t>(i * 7 % 10);
  const auto data = std::filesystem::path("data");
  folder.write(data / images, idx_bytes({count, kSide, kSide}, counting(count * kSide * kSide)));
  folder.write(data / labels, idx_bytes({count}, digits));
}

}  // namespace

Workplace::Workplace() {
  write_split(folder_, kTrainImages, kTrainLabels, 64);
  write_split(folder_, kTestImages, kTestLabels, 32);
}

ProgramSpec Workplace::gradring(const Words& words, const Variables& variables) const {
  ProgramSpec spec{.command = {GRADRING_BINARY}, .folder = folder_.path(), .variables = variables};
  spec.command.insert(spec.command.end(), words.begin(), words.end());
  spec.variables.emplace_back("TORCHELASTIC_RUN_ID", folder_.path().string());  // meets nobody of another test
  return spec;
}

std::vector<std::string> Workplace::left() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    if (entry.path().filename() != "data") names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

std::ptrdiff_t reasons_in(const std::string& err) {
  std::ptrdiff_t reasons = 0;
  std::istringstream lines(err);
  for (std::string line; std::getline(lines, line);) reasons += !line.starts_with("gradring launch: then rank ");
  return reasons;
}

Words short_training(const Words& more) {
  return joined({"train", "--dataset", "mnist", "--data-dir", "data", "--steps", "2", "--batch-size", "8", "--run-dir",
                 "run", "--progress", "none", "--device", "cpu"},
                more);
}

}  // namespace gradring::tests
