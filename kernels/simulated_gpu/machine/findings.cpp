// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/findings.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "kernels/simulated_gpu/ptx/error.h"

namespace gradring::simulated_gpu {
namespace {

/// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none.
std::size_t utf8_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t bytes = first < 0x80   ? 1
                            : first < 0xc2 ? 0
                            : first < 0xe0 ? 2
                            : first < 0xf0 ? 3
                            : first < 0xf5 ? 4
                                           : 0;
  if (bytes == 0 || bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i)
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  const unsigned code = bytes > 2 ? first << 8U | byte(1) : 0;
  const bool is_overlong = (bytes == 3 && code < 0xe0a0) || (bytes == 4 && code < 0xf090);
  const bool is_beyond = (bytes == 3 && code >= 0xeda0 && code < 0xee00) || (bytes == 4 && code >= 0xf490);
  return is_overlong || is_beyond ? 0 : bytes;
}

/// A path or a message of the program may be in any encoding: bytes that are not UTF-8 become U+FFFD.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t bytes = utf8_bytes(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(bytes, 1));
    text.remove_prefix(character.size());
    const char c = character.front();
    if (bytes == 0) {
      result += "\\ufffd";
      continue;
    }
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      result += escaped;
    } else {
      result += character;
    }
  }
  return result + '"';
}

std::string numbers(const std::optional<Extent>& at) {
  return at ? joined("[", at->x, ", ", at->y, ", ", at->z, "]") : "null";
}

std::string json_of(const std::optional<CodeLocation>& side) {
  if (!side) return "null";
  return joined("{\"kernel\": ", quoted(side->kernel), ", \"file\": ", quoted(side->file), ", \"line\": ", side->line,
                ", \"instruction\": ", quoted(side->instruction), "}");
}

std::string list_of(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + quoted(text);
  return list;
}

std::string counted(std::size_t count, const std::string& what) {
  return joined(count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

std::string text_of(const Finding& finding) {
  return (finding.severity == Severity::error ? "" : std::string(name_of(finding.severity)) + ": ") +
         (finding.device < 0 ? "" : joined("cuda:", finding.device, ": ")) + finding.text;
}

std::string json_of(const Finding& finding) {
  return joined("{\"kind\": ", quoted(name_of(finding.kind)), ", \"severity\": ", quoted(name_of(finding.severity)),
                ", \"count\": ", finding.count, ", \"suppressed\": ", finding.is_suppressed ? "true" : "false",
                ", \"device\": ", finding.device, ", \"kernel\": ", quoted(finding.kernel),
                ", \"file\": ", quoted(finding.file), ", \"line\": ", finding.line,
                ", \"called_from\": ", quoted(finding.called_from), ", \"instruction\": ", quoted(finding.instruction),
                ", \"other\": ", json_of(finding.other), ", \"thread\": ", numbers(finding.thread),
                ", \"block\": ", numbers(finding.block), ", \"text\": ", quoted(finding.text), ", \"host_stack\": [",
                list_of(finding.host_stack), "]}");
}

FindingLog::FindingLog(const FindingOptions& options, Show show)
    : goes_on_(options.goes_on),
      formal_(options.formal),
      show_(std::move(show)),
      suppressions_(suppressions_from(options.suppressions)) {}

bool FindingLog::is_suppressed(const Finding& finding) const {
  return std::ranges::any_of(suppressions_, [&](const Suppression& one) {
    return one.matches(finding.kind, finding.kernel, finding.file, finding.line) ||
           (finding.other &&
            one.matches(finding.kind, finding.other->kernel, finding.other->file, finding.other->line));
  });
}

bool FindingLog::is_new(const FindingKey& key) {
  if (!formal_ && severity_of(key.kind) == Severity::formal) return false;
  const std::lock_guard lock(mutex_);
  const auto found = indices_.find(key);
  if (found == indices_.end()) return true;
  ++findings_[found->second].count;
  return false;
}

void FindingLog::add(const FindingKey& key, Finding finding) {
  if (!formal_ && finding.severity == Severity::formal) return;
  finding.is_suppressed = is_suppressed(finding);
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = indices_.try_emplace(key, findings_.size());
  if (!is_new) {
    ++findings_[known->second].count;
    return;
  }
  if (host_stack_) finding.host_stack = host_stack_(finding);  // it takes time: once for each
  if (!finding.is_suppressed && show_) show_(finding);
  if (record_) record_(json_of(finding));
  findings_.push_back(std::move(finding));
}

void FindingLog::add(Finding finding) {
  const FindingKey key{.kind = finding.kind, .detail = text_of(finding)};
  add(key, std::move(finding));
}

std::vector<Finding> FindingLog::all() const {
  const std::lock_guard lock(mutex_);
  return findings_;
}

std::vector<std::string> FindingLog::texts() const {
  std::vector<std::string> texts;
  for (const Finding& finding : all()) texts.push_back(text_of(finding));
  return texts;
}

std::size_t FindingLog::count(Severity severity) const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      findings_, [&](const Finding& one) { return one.severity == severity && !one.is_suppressed; }));
}

std::string FindingLog::summary() const {
  std::string text = counted(count(Severity::error), "error") + ", " + counted(count(Severity::warning), "warning");
  if (const std::size_t formal = count(Severity::formal); formal > 0) text += ", " + counted(formal, "formal finding");
  struct Sum {
    std::size_t findings = 0;
    std::uint64_t times = 0;
  };
  std::map<FindingKind, Sum> sums;
  std::size_t suppressed = 0;
  for (const Finding& finding : all()) {
    if (finding.is_suppressed) {
      ++suppressed;
      continue;
    }
    ++sums[finding.kind].findings;
    sums[finding.kind].times += finding.count;
  }
  if (suppressed > 0) text += joined(" (", suppressed, " suppressed)");
  for (const auto& [kind, sum] : sums)
    text += joined("\n   ", name_of(kind), ": ", sum.findings) +
            (sum.times > sum.findings ? joined(", seen ", sum.times, " times") : "");
  return text;
}

std::string FindingLog::json() const {
  std::string text = joined("{\"errors\": ", count(Severity::error), ", \"warnings\": ", count(Severity::warning),
                            ", \"formal\": ", count(Severity::formal), ", \"findings\": [");
  const char* separator = "";
  for (const Finding& finding : all()) text += std::exchange(separator, ",") + ("\n  " + json_of(finding));
  return text + "]}\n";
}

}  // namespace gradring::simulated_gpu
