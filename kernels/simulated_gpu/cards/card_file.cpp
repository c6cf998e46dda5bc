// SPDX-License-Identifier: Apache-2.0
// Reads card files.
#include <charconv>
#include <map>
#include <sstream>
#include <string_view>

#include "kernels/base/error.h"
#include "kernels/simulated_gpu/cards/card.h"

namespace gradring::simulated_gpu {
namespace {

constexpr int kKibibyte = 1024;
constexpr std::size_t kGibibyte = std::size_t{1} << 30;

/// Limits that follow from the compute capability.
struct Capability {
  int major, minor;
  int threads_per_multiprocessor, blocks_per_multiprocessor;
  int shared_kib_per_multiprocessor, shared_kib_per_block;
  std::size_t reserved_shared_bytes, shared_allocation_unit;
};

constexpr Capability kCapabilities[] = {
    {7, 5, 1024, 16, 64, 64, 0, 256},     {8, 0, 2048, 32, 164, 163, 1024, 128}, {8, 6, 1536, 16, 100, 99, 1024, 128},
    {8, 9, 1536, 24, 100, 99, 1024, 128}, {9, 0, 2048, 32, 228, 227, 1024, 128},
};

std::string_view trimmed(std::string_view text) {
  constexpr const char* kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// The values of a file, each taken once.
class Values {
 public:
  Values(const std::string& file, const std::string& text) : file_(file) {
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
      const std::string_view content = trimmed(line);
      if (content.empty() || content.front() == '#') continue;
      const std::size_t equals = content.find('=');
      if (equals == content.npos) reject(number, "'" + std::string(content) + "', expected KEY = VALUE");
      const std::string key(trimmed(content.substr(0, equals)));
      const auto [at, is_new] =
          values_.try_emplace(key, Value{std::string(trimmed(content.substr(equals + 1))), number});
      if (!is_new) reject(number, key + " again, which line " + std::to_string(at->second.line) + " has");
    }
  }

  std::string text(const std::string& key) {
    const Value value = take(key);
    if (value.text.empty()) reject(value.line, key + " without a value");
    return value.text;
  }

  double number(const std::string& key, double least, double most) { return number_in(key, take(key), least, most); }

  int integer(const std::string& key, int least, int most) {
    const Value value = take(key);
    const double found = number_in(key, value, least, most);
    if (found != static_cast<int>(found)) reject(value.line, key + " = '" + value.text + "', expected a whole number");
    return static_cast<int>(found);
  }

  const Capability& capability(const std::string& key) {
    const Value value = take(key);
    std::string known;
    for (const Capability& each : kCapabilities) {
      const std::string name = std::to_string(each.major) + "." + std::to_string(each.minor);
      if (name == value.text) return each;
      known += (known.empty() ? "" : ", ") + name;
    }
    reject(value.line, key + " = '" + value.text + "', expected one of " + known);
  }

  void expect_no_other() const {
    if (!values_.empty()) reject(values_.begin()->second.line, "the unknown key '" + values_.begin()->first + "'");
  }

 private:
  struct Value {
    std::string text;
    int line = 0;
  };

  [[noreturn]] void reject(int line, const std::string& what) const {
    throw InvalidArgument("the GPU's file " + file_ + (line > 0 ? ", line " + std::to_string(line) : "") + " has " +
                          what);
  }

  double number_in(const std::string& key, const Value& value, double least, double most) const {
    double number = 0;
    const char* const end = value.text.data() + value.text.size();
    const auto [rest, error] = std::from_chars(value.text.data(), end, number);
    if (error != std::errc() || rest != end || !(number >= least && number <= most)) {
      std::ostringstream what;
      what << key << " = '" << value.text << "', expected a number from " << least << " to " << most;
      reject(value.line, what.str());
    }
    return number;
  }

  Value take(const std::string& key) {
    auto node = values_.extract(key);
    if (!node) reject(0, "no " + key);
    return node.mapped();
  }

  const std::string& file_;
  std::map<std::string, Value> values_;
};

}  // namespace

Card parse_card(const std::string& file, const std::string& text) {
  constexpr double kMega = 1e6;
  constexpr double kGiga = 1e9;
  Values values(file, text);
  const Capability& capability = values.capability("compute_capability");
  Card card{.name = file,
            .full_name = values.text("name"),
            .major = capability.major,
            .minor = capability.minor,
            .multiprocessors = values.integer("multiprocessors", 1, 1024),
            .memory_bytes = static_cast<std::size_t>(values.integer("memory_gib", 1, 4096)) * kGibibyte,
            .l2_bytes = values.integer("l2_kib", 1, 1 << 20) * kKibibyte,
            .bus_bits = values.integer("memory_bus_bits", 1, 1 << 16),
            .clock_hertz = values.number("clock_mhz", 1, 10000) * kMega,
            .bytes_per_second = values.number("memory_gb_per_second", 1, 1e6) * kGiga,
            .host_bytes_per_second = values.number("pcie_gb_per_second", 0.1, 1e4) * kGiga,
            .tensor_flops_per_cycle = values.number("tensor_flops_per_cycle", 1, 1e6),
            .threads_per_multiprocessor = capability.threads_per_multiprocessor,
            .blocks_per_multiprocessor = capability.blocks_per_multiprocessor,
            .shared_bytes_per_multiprocessor = capability.shared_kib_per_multiprocessor * kKibibyte,
            .shared_bytes_per_block = capability.shared_kib_per_block * kKibibyte,
            .reserved_shared_bytes = capability.reserved_shared_bytes,
            .shared_allocation_unit = capability.shared_allocation_unit};
  values.expect_no_other();
  return card;
}

}  // namespace gradring::simulated_gpu
