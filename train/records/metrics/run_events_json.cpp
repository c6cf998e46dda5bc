// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/run_events_json.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>
#include <utility>

#include "train/records/metrics/event_reader.h"

namespace gradring::train {
namespace {

using Json = nlohmann::ordered_json;
using Seconds = std::chrono::duration<double>;

// The names and members of each event, for both directions: `visit` is Writer or EventReader, or takes the names.

template <class Event, class Record>
concept Is = std::is_same_v<std::remove_const_t<Event>, Record>;

template <class Visit>
void visit_event(Is<RunHeader> auto& header, Visit visit) {
  visit("version", header.version);
  visit("commit", header.commit);
  visit("command", header.command);
  visit("start", header.start);
  visit("name", header.name);
  visit("tags", header.tags);
  visit("host", header.host);
  visit("machine", header.machine);
  visit("device", header.device);
  visit("backend", header.backend);
  visit("precision", header.precision);
  visit("model", header.model);
  visit("parameters", header.parameters);
  visit("parameter_groups", header.groups);
  visit("dataset", header.dataset);
  visit("train_samples", header.train_samples);
  visit("validation_samples", header.validation_samples);
  visit("test_samples", header.test_samples);
  visit("ranks", header.ranks);
  visit("global_batch", header.global_batch);
  visit("steps_per_epoch", header.steps_per_epoch);
  visit("total_steps", header.total_steps);
  visit("resumed_from", header.resumed_from);
  visit("planned_memory", header.planned_memory);
  visit("config", header.config);
}

template <class Visit>
void visit_event(Is<StepRecord> auto& record, Visit visit) {
  visit("step", record.step);
  visit("epoch", record.epoch);
  visit("loss", record.loss);
  visit("lr", record.learning_rate);
  visit("samples", record.samples);
  visit("seconds", record.duration);
  visit("data_wait", record.data_wait);
  visit("exposed_communication", record.exposed_communication);
  visit("forward", record.forward);
  visit("backward", record.backward);
  visit("optimizer", record.optimizer);
  visit("gradient_norm", record.gradient_norm);
  visit("loss_scale", record.loss_scale);
  visit("skipped", record.skipped);
  visit("non_finite", record.non_finite);
  visit("underflow", record.underflow);
}

template <class Visit>
void visit_event(Is<RanksRecord> auto& record, Visit visit) {
  visit("step", record.step);
  visit("steps", record.steps);
  visit("seconds", record.seconds);
  visit("data_wait", record.data_wait);
  visit("exposed_communication", record.exposed_communication);
  visit("memory", record.memory);
}

template <class Visit>
void visit_event(Is<EvalRecord> auto& record, Visit visit) {
  visit("step", record.step);
  visit("epoch", record.epoch);
  visit("ends_epoch", record.ends_epoch);
  visit("split", record.split);
  visit("accuracy", record.accuracy);
  visit("loss", record.loss);
  visit("samples", record.samples);
  visit("seconds", record.seconds);
  visit("top5_accuracy", record.top5_accuracy);
  visit("ema_accuracy", record.ema_accuracy);
  visit("ema_loss", record.ema_loss);
}

template <class Visit>
void visit_event(Is<RestartRecord> auto& record, Visit visit) {
  visit("step", record.step);
  visit("attempt", record.attempt);
}

template <class Visit>
void visit_event(Is<CheckpointRecord> auto& record, Visit visit) {
  visit("step", record.step);
  visit("seconds", record.seconds);
}

template <class Visit>
void visit_event(Is<FaultRecord> auto& record, Visit visit) {
  visit("step", record.step);
  visit("rank", record.rank);
  visit("kind", record.kind);
}

template <class Visit>
void visit_event(Is<EndRecord> auto& record, Visit visit) {
  visit("outcome", record.outcome);
  visit("reason", record.reason);
  visit("steps", record.steps);
  visit("seconds", record.seconds);
  visit("samples_per_second", record.samples_per_second);
  visit("accuracy", record.accuracy);
  visit("loss", record.loss);
  visit("peak_memory", record.peak_memory);
}

constexpr const char* kEventNames[] = {"header", "train", "ranks", "eval", "restart", "checkpoint", "fault", "end"};
static_assert(std::size(kEventNames) == std::variant_size_v<RunEvent>);

/// Leaves out empty optional values and texts.
class Writer {
 public:
  explicit Writer(Json& json) : json_(json) {}
  void operator()(const char* name, const auto& value) const { json_[name] = value; }
  void operator()(const char* name, const std::string& text) const {
    if (!text.empty()) json_[name] = text;
  }
  template <class Number>
  void operator()(const char* name, const std::optional<Number>& value) const {
    if (value) json_[name] = *value;
  }
  void operator()(const char* name, const Seconds& value) const { json_[name] = value.count(); }
  void operator()(const char* name, const Outcome& outcome) const { json_[name] = name_of(outcome); }
  void operator()(const char* name, const MemoryTable& table) const {
    for (const MemoryClass each : all_memory_classes()) json_[name][std::string(name_of(each))] = table[each];
  }
  void operator()(const char* name, const std::vector<GroupRecord>& groups) const {
    for (const GroupRecord& group : groups) {
      Json object;
      visit_group(group, Writer(object));
      json_[name].push_back(std::move(object));
    }
  }
  /// A TOML literal of an option is a JSON value as well.
  void operator()(const char* name, const std::vector<std::pair<std::string, std::string>>& options) const {
    for (const auto& [option, literal] : options) {
      Json value = Json::parse(literal, nullptr, false);
      json_[name][option] = value.is_discarded() ? Json(literal) : std::move(value);
    }
  }

 private:
  Json& json_;
};

/// Calls use(name, std::type_identity<Record>()) for each kind of event.
template <class Use>
void for_each_kind(Use use) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (use(kEventNames[I], std::type_identity<std::variant_alternative_t<I, RunEvent>>()), ...);
  }(std::make_index_sequence<std::size(kEventNames)>());
}

std::set<std::string, std::less<>> member_names() {
  std::set<std::string, std::less<>> names = {"event", "time", "schema", "samples_per_second"};
  for_each_kind([&]<class Record>(std::string_view, std::type_identity<Record>) {
    const Record record;
    visit_event(record, [&names](const char* name, const auto& /*value*/) { names.insert(name); });
  });
  return names;
}

/// Nothing if no event has this name.
std::optional<RunEvent> read_event(std::string_view name, const Json& json, std::string& problem) {
  std::optional<RunEvent> event;
  for_each_kind([&]<class Record>(std::string_view each, std::type_identity<Record>) {
    if (each != name) return;
    Record record;
    visit_event(record, EventReader(json, problem));
    event = std::move(record);
  });
  return event;
}

}  // namespace

std::string to_line(const TimedEvent& event) {
  Json json{{"event", kEventNames[event.event.index()]}, {"time", event.time}};
  if (std::holds_alternative<RunHeader>(event.event)) json["schema"] = kMetricsSchema;
  std::visit([&json](const auto& record) { visit_event(record, Writer(json)); }, event.event);
  if (const auto* step = std::get_if<StepRecord>(&event.event)) json["samples_per_second"] = step->samples_per_second();
  if (const auto* eval = std::get_if<EvalRecord>(&event.event); eval && eval->split == kTestSplit) json.erase("split");
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_event_member(std::string_view name) {
  static const auto kNames = member_names();
  return kNames.contains(name);
}

std::optional<Json> event_in(std::string_view line, std::string& problem) {
  std::optional<Json> parsed = parse_bounded(line, problem);
  if (!parsed || !parsed->is_object()) return std::nullopt;
  std::string name;
  EventReader(*parsed, problem)("event", name);
  if (!problem.empty()) return std::nullopt;
  return parsed;
}

std::optional<TimedEvent> from_line(std::string_view line, std::string& problem) {
  const std::optional<Json> json = event_in(line, problem);
  if (!json) return std::nullopt;
  std::optional<RunEvent> event = read_event(json->value("event", ""), *json, problem);
  if (!event) return std::nullopt;
  const Json time = json->value("time", Json());
  const double seconds = time.is_number() ? time.get<double>() : -1;
  if (problem.empty() && !(seconds >= 0 && seconds <= kMostTime))
    problem = "time is " + shown_value(time) + ", expected seconds since 1970, before the year 10000";
  if (!problem.empty()) return std::nullopt;
  return TimedEvent{.time = seconds, .event = *std::move(event)};
}

std::optional<TimedEvent> from_line(std::string_view line) {
  std::string problem;
  return from_line(line, problem);
}

}  // namespace gradring::train
