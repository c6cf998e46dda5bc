// SPDX-License-Identifier: Apache-2.0
#include "data/files/npy_header.h"

#include <charconv>
#include <system_error>
#include <utility>

namespace gradring::data {
namespace {

constexpr std::size_t kMostNpyExtents = 32;  // NumPy's own limit

/// Parses a text from its front; each method returns whether it found its token.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool literal(std::string_view expected) {
    skip_spaces();
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }

  bool text(std::string& value) {
    const char quote = literal("'") ? '\'' : literal("\"") ? '"' : '\0';
    const auto end = quote ? rest_.find(quote) : rest_.npos;
    if (end == rest_.npos) return false;
    value = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool truth(bool& value) {
    value = literal("True");
    return value || literal("False");
  }

  bool number(std::int64_t& value) {
    skip_spaces();
    if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') return false;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return error == std::errc();
  }

  /// (), (3,), (3, 4), (3, 4,); Python 2 wrote 3L.
  bool tuple(std::vector<std::int64_t>& values) {
    if (!literal("(")) return false;
    bool comma = true;
    for (std::int64_t value = 0; !literal(")"); values.push_back(value)) {
      if (!comma || values.size() == kMostNpyExtents || !number(value)) return false;
      literal("L");
      comma = literal(",");
    }
    return values.size() != 1 || comma;
  }

  bool at_end() {
    skip_spaces();
    return rest_.empty();
  }

 private:
  void skip_spaces() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

}  // namespace

std::optional<NpyHeader> parse_npy_header(std::string_view text) {
  Scanner scanner(text);
  NpyHeader header;
  bool saw_descr = false, saw_order = false, saw_shape = false;
  if (!scanner.literal("{")) return std::nullopt;
  bool comma = true;
  while (!scanner.literal("}")) {
    std::string key;
    if (!comma || !scanner.text(key) || !scanner.literal(":")) return std::nullopt;
    const bool fits = key == "descr"           ? !std::exchange(saw_descr, true) && scanner.text(header.descr)
                      : key == "fortran_order" ? !std::exchange(saw_order, true) && scanner.truth(header.fortran_order)
                      : key == "shape"         ? !std::exchange(saw_shape, true) && scanner.tuple(header.shape)
                                               : false;
    if (!fits) return std::nullopt;
    comma = scanner.literal(",");
  }
  if (!saw_descr || !saw_order || !saw_shape || !scanner.at_end()) return std::nullopt;
  return header;
}

}  // namespace gradring::data
