// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/rendezvous/store.h"
#include "kernels/base/host_name.h"
#include "kernels/base/printable.h"

namespace gradring::train {

using nlohmann::json;

namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();
constexpr int kMaxSignal = NSIG - 1;
constexpr int kMaxCode = 255;
constexpr int kMaxErrno = 4095;
constexpr std::size_t kMaxKindBytes = 16;
constexpr std::size_t kMaxNonceBytes = 64;
constexpr std::size_t kMaxHostBytes = 255;
constexpr std::size_t kMaxRoleBytes = 1024;
constexpr std::size_t kMaxReasonBytes = 4096;
constexpr std::string_view kEntryPrefix = "key-";
/// FileStore encodes a byte of a key in up to three.
constexpr std::size_t kMaxEntryNameBytes = kEntryPrefix.size() + 3 * comm::Store::kMaxKeyBytes;

/// The first `most` bytes of `text`, or fewer, so that no character is split.
std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // inside a character
  return text.substr(0, end);
}

std::optional<std::int64_t> integer_of(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    return std::nullopt;
  return value.get<std::int64_t>();
}

bool is_within(const json& value, std::int64_t lowest, std::int64_t highest) {
  const auto number = integer_of(value);
  return number && *number >= lowest && *number <= highest;
}

std::string found(const json& value) {
  return value.is_number() ? value.dump() : std::string("a ") + value.type_name();
}

/// Reads the members of one message within bounds. Throws MessageError.
class MessageFields {
 public:
  /// `kind` names the message in errors; `message` must outlive this.
  MessageFields(const char* kind, const json& message) : kind_(kind), message_(message) {}

  /// A whole number from `lowest` to `highest`.
  std::int64_t number(const char* name, std::int64_t lowest, std::int64_t highest) const {
    const json& value = at(name);
    if (!is_within(value, lowest, highest))
      refuse(name, found(value), fmt::format("a whole number from {} to {}", lowest, highest));
    return value.get<std::int64_t>();
  }
  int number(const char* name, int lowest, int highest) const {
    return static_cast<int>(number(name, std::int64_t(lowest), std::int64_t(highest)));
  }
  bool is_null(const char* name) const { return at(name).is_null(); }
  /// At most `most` whole numbers from `lowest` to `highest`.
  std::vector<int> numbers(const char* name, int lowest, int highest, std::size_t most) const {
    const json& values = at(name);
    const std::string expected = fmt::format("at most {} whole numbers from {} to {}", most, lowest, highest);
    if (!values.is_array()) refuse(name, found(values), expected);
    if (values.size() > most) refuse(name, fmt::format("{} values", values.size()), expected);
    for (const json& value : values)
      if (!is_within(value, lowest, highest)) refuse(name, "one that holds " + found(value), expected);
    return values.get<std::vector<int>>();
  }
  /// At most `most` bytes without control characters.
  std::string plain_text(const char* name, std::size_t most) const {
    const std::string expected = fmt::format("at most {} bytes of text without control characters", most);
    const json& value = at(name);
    if (!value.is_string()) refuse(name, found(value), expected);
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() > most) refuse(name, fmt::format("{} bytes", text.size()), expected);
    if (printable_bytes(text) < text.size()) refuse(name, "text with control characters", expected);
    return text;
  }
  /// Text to print: cut at `most` bytes, with control characters but tabs and line ends escaped.
  std::string escaped_text(const char* name, std::size_t most) const {
    const json& value = at(name);
    if (!value.is_string()) refuse(name, found(value), "text");
    return printable(shortened(value.get_ref<const std::string&>(), most), "\n\t");
  }

  [[noreturn]] void refuse(const char* name, const std::string& found, const std::string& expected) const {
    throw MessageError(fmt::format(
        "it sent an invalid message: '{}' of '{}' is {}, expected {}; run the same version of gradring on all nodes",
        name, kind_, found, expected));
  }

 private:
  const json& at(const char* name) const {
    const auto it = message_.find(name);
    if (it == message_.end()) refuse(name, "missing", "in every such message");
    return *it;
  }

  const char* kind_;
  const json& message_;
};

}  // namespace

JoinRequest join_request_of(const LaunchOptions& options) {
  return {.node = options.rendezvous == Rendezvous::dynamic ? -1 : options.node_rank,
          .nodes = options.nnodes,
          .workers = options.nproc_per_node,
          .role = options.role,
          .host = host_name()};
}

json join_message(const JoinRequest& request) {
  return {{"say", "join"},
          {"node", request.node},
          {"least", request.nodes.least},
          {"most", request.nodes.most},
          {"workers", request.workers},
          {"role", request.role},
          {"host", request.host}};
}

json start_message(const StartMessage& start) {
  const NodeAssignment& assignment = start.assignment;
  return {{"say", "start"},
          {"attempt", start.attempt},
          {"node", assignment.node},
          {"nodes", assignment.nodes},
          {"first_rank", assignment.first_rank},
          {"world_size", assignment.world_size},
          {"first_role_rank", assignment.first_role_rank},
          {"role_world_size", assignment.role_world_size},
          {"master_port", assignment.master_port},
          {"address", start.address},
          {"nonce", start.nonce}};
}

json exit_message(const ReportedExit& reported) {
  const WorkerExit& exit = reported.exit;
  json sent = json::array();
  for (std::size_t number = 1; number < exit.sent.size(); ++number)
    if (exit.sent[number]) sent.push_back(number);
  return {{"say", "exit"},        {"rank", exit.rank},     {"pid", exit.pid},
          {"code", exit.code},    {"signal", exit.signal}, {"exec_error", exit.exec_error},
          {"sent", sent},         {"host", exit.host},     {"message", shortened(exit.message, kMaxTextBytes)},
          {"step", reported.step}};
}

json leave_message() { return {{"say", "leave"}}; }

json stopped_message() { return {{"say", "stopped"}}; }

json signal_message(int number) { return {{"say", "signal"}, {"number", number}}; }

json key_message(const std::string& name, const std::optional<std::string>& value) {
  if (!value) return {{"say", "key"}, {"name", name}, {"value", nullptr}};
  json bytes = json::array();
  for (const char c : *value) bytes.push_back(static_cast<unsigned char>(c));
  return {{"say", "key"}, {"name", name}, {"value", std::move(bytes)}};
}

json finish_message(int code, const std::string& why) {
  return {{"say", "finish"}, {"code", code}, {"why", shortened(why, kMaxReasonBytes)}};
}

json refuse_message(const std::string& why) { return {{"say", "refuse"}, {"why", why}}; }

std::string kind_of(const json& message) { return MessageFields("any", message).plain_text("say", kMaxKindBytes); }

JoinRequest join_request_in(const json& message) {
  const MessageFields fields("join", message);
  const NodeRange nodes = {fields.number("least", 1, kMostNodes), fields.number("most", 1, kMostNodes)};
  return {.node = fields.number("node", -1, kMostNodes - 1),
          .nodes = nodes,
          .workers = fields.number("workers", 1, kMostWorkersPerNode),
          .role = fields.plain_text("role", kMaxRoleBytes),
          .host = fields.escaped_text("host", kMaxHostBytes)};
}

StartMessage start_in(const json& message) {
  const MessageFields fields("start", message);
  const int nodes = fields.number("nodes", 1, kMostNodes);
  const int world_size = fields.number("world_size", 1, kLargestWorld);
  const int role_world_size = fields.number("role_world_size", 1, world_size);
  const NodeAssignment assignment = {.node = fields.number("node", 0, nodes - 1),
                                     .nodes = nodes,
                                     .first_rank = fields.number("first_rank", 0, world_size - 1),
                                     .world_size = world_size,
                                     .first_role_rank = fields.number("first_role_rank", 0, role_world_size - 1),
                                     .role_world_size = role_world_size,
                                     .master_port = fields.number("master_port", 1, kHighestPort)};
  return {.attempt = fields.number("attempt", 0, kMaxInt),
          .assignment = assignment,
          .address = fields.plain_text("address", kMaxHostBytes),
          .nonce = fields.plain_text("nonce", kMaxNonceBytes)};
}

ReportedExit exit_in(const json& message) {
  const MessageFields fields("exit", message);
  WorkerExit exit{.rank = fields.number("rank", 0, kLargestWorld - 1),
                  .pid = fields.number("pid", 0, kMaxInt),
                  .code = fields.number("code", 0, kMaxCode),
                  .signal = fields.number("signal", 0, kMaxSignal),
                  .exec_error = fields.number("exec_error", 0, kMaxErrno),
                  .host = fields.escaped_text("host", kMaxHostBytes),
                  .message = fields.escaped_text("message", kMaxTextBytes)};
  for (const int number : fields.numbers("sent", 1, kMaxSignal, kMaxSignal))
    exit.sent.set(static_cast<std::size_t>(number));
  return {std::move(exit), fields.number("step", std::int64_t(-1), std::numeric_limits<std::int64_t>::max())};
}

int signal_in(const json& message) { return MessageFields("signal", message).number("number", 1, kMaxSignal); }

std::pair<std::string, std::optional<std::string>> entry_in(const json& message) {
  const MessageFields fields("key", message);
  std::string name = fields.plain_text("name", kMaxEntryNameBytes);
  if (!name.starts_with(kEntryPrefix) || name.find('/') != std::string::npos)
    fields.refuse("name", "another name", "'key-...' without a slash");
  if (fields.is_null("value")) return {std::move(name), std::nullopt};
  const auto bytes = fields.numbers("value", 0, 255, comm::Store::kMaxValueBytes);
  return {std::move(name), std::string(bytes.begin(), bytes.end())};
}

FinishMessage finish_in(const json& message) {
  const MessageFields fields("finish", message);
  return {.code = fields.number("code", 0, kMaxCode), .why = fields.escaped_text("why", kMaxReasonBytes)};
}

std::string refusal_in(const json& message) {
  return MessageFields("refuse", message).escaped_text("why", kMaxReasonBytes);
}

}  // namespace gradring::train
