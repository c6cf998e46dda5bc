// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/run_list.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/base/printable.h"
#include "train/records/metrics/byte_text.h"
#include "train/records/metrics/run_events_json.h"
#include "train/view/runs/group_rows.h"
#include "train/view/runs/rank_means.h"
#include "train/view/runs/run_config.h"

namespace gradring::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLabelColumns = 15;
constexpr std::size_t kMostEvaluations = 10;
constexpr std::size_t kMostRanksShown = 64;
constexpr std::size_t kMostClassesShown = 20;

std::string time_text(double time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<std::time_t>(time)));
}

std::string share_text(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

/// Collects lines "label    text".
class Description {
 public:
  Description(const Run& run, std::size_t width, Glyphs glyphs)
      : run_(run), header_(run.header()), width_(width), glyphs_(glyphs) {}

  std::string text() {
    add_identity();
    add_results();
    add_groups();
    add_ranks();
    add_evaluations();
    add_classes();
    add_events();
    return std::move(text_);
  }

 private:
  void line(std::string_view label, const std::string& value) {
    if (!value.empty()) text_ += fmt::format("{:<{}}{}\n", label, kLabelColumns, printable(value));
  }

  void add_identity() {
    line("Run", run_.path.string());
    line("State", fmt::format("{}{}{}", name_of(run_.state), run_.reason.empty() ? "" : ": ", run_.reason));
    line("Name", header_.name);
    line("Tags", fmt::format("{}", fmt::join(header_.tags, ", ")));
    if (run_.figures.started > 0)
      line("Started",
           fmt::format("{}, ran for {}", time_text(run_.figures.started), duration_text(run_.figures.seconds)));
    line("Command", start_command(header_));
    if (header_.model.empty()) return;  // no header
    line("Model", fmt::format("{}, {} parameters", header_.model, header_.parameters));
    line("Data", fmt::format("{}, {} training and {} test samples", header_.dataset, header_.train_samples,
                             header_.test_samples));
    line("Machine", fmt::format("{}: {}", header_.host, header_.machine));
    line("Compute", fmt::format("{} rank{}, {} by {}, {}", header_.ranks, header_.ranks == 1 ? "" : "s", header_.device,
                                header_.backend, header_.precision));
    line("Program", fmt::format("gradring {}, commit {}", header_.version, header_.commit));
  }

  void add_evaluated(std::string_view label, const SplitFigures& evaluated) {
    if (evaluated.best_accuracy)
      line(label,
           fmt::format("best {} % (step {}), last {} %, loss {}", percent_text(evaluated.best_accuracy),
                       evaluated.best_step, percent_text(evaluated.last_accuracy), loss_text(evaluated.last_loss)));
  }

  void add_results() {
    const RunFigures& figures = run_.figures;
    line("Steps", figures.total_steps > 0
                      ? fmt::format("{} of {}, {} an epoch, {} samples each", figures.steps, figures.total_steps,
                                    header_.steps_per_epoch, header_.global_batch)
                      : fmt::to_string(figures.steps));
    add_evaluated(figures.is_validated ? "Test accuracy" : "Accuracy", figures.test);
    add_evaluated("Validation", figures.validation);
    if (const auto summary = finished_summary(run_)) {
      if (summary->top5_accuracy) line("Top-5 accuracy", percent_text(summary->top5_accuracy) + " %");
      if (summary->tta_accuracy) line("With --tta", percent_text(summary->tta_accuracy) + " %");
    }
    if (figures.best_saved_accuracy)
      line("Best saved",
           fmt::format("{} % (step {}){}", percent_text(figures.best_saved_accuracy), figures.best_saved_step,
                       figures.best_is_not_saved() ? ": checkpoints are scored at the ends of epochs" : ""));
    if (figures.last_loss) line("Training loss", loss_text(figures.last_loss));
    std::vector<double> losses;
    for (const auto& [time, step] : run_.history.steps) losses.push_back(step.loss);
    line("", sparkline(losses, std::min<std::size_t>(width_ - std::min(width_, kLabelColumns), 60), glyphs_));
    if (figures.samples_per_second) line("Speed", fmt::format("{:.0f} samples/s", *figures.samples_per_second));
    const auto skipped =
        std::ranges::count_if(run_.history.steps, [](const auto& step) { return step.record.skipped; });
    if (skipped > 0) line("Skipped steps", fmt::to_string(skipped));
  }

  void add_groups() {
    if (header_.groups.empty()) return;
    TextTable table = TextTable::with(kGroupTexts, kGroupNumbers);
    table.rows = group_rows(header_.groups);
    text_ += "\nParameter groups\n" + table.text(width_, glyphs_);
  }

  void add_ranks() {
    const std::vector<RankMeans> ranks = rank_means(run_.history.ranks);
    if (ranks.empty()) return;
    const auto straggler = straggler_of(ranks);
    TextTable table{.columns = {{.head = "  rank", .right_aligned = true},
                                {.head = "  step", .right_aligned = true},
                                {.head = "  waits for data", .right_aligned = true},
                                {.head = "  for other ranks", .right_aligned = true},
                                {.head = "  peak memory", .right_aligned = true},
                                {.head = ""}}};
    const std::vector<std::size_t> shown = shown_ranks(ranks, kMostRanksShown);
    for (const std::size_t rank : shown) {
      const RankMeans& means = ranks[rank];
      const bool is_slowest = straggler && straggler->rank == rank;
      table.rows.push_back({fmt::to_string(rank), fmt::format("{:.1f} ms", 1e3 * means.seconds),
                            share_text(means.data_wait, means.seconds),
                            share_text(means.exposed_communication, means.seconds), memory_text(means.memory),
                            is_slowest ? fmt::format(" straggler: +{:.1f} ms a step", 1e3 * straggler->delay) : ""});
    }
    text_ += shown.size() == ranks.size()
                 ? "\nRanks, means of a step\n"
                 : fmt::format("\nThe {} of {} ranks that work longest, means of a step\n", shown.size(), ranks.size());
    text_ += table.text(width_, glyphs_);
  }

  void add_evaluations() {
    const auto& evals = run_.history.evals;
    const RunFigures& figures = run_.figures;
    const std::string_view selecting = selecting_split(run_.history);
    if (evals.empty()) return;
    TextTable table{.columns = {{.head = "  epoch", .right_aligned = true},
                                {.head = "    step", .right_aligned = true},
                                {.head = " accuracy", .right_aligned = true},
                                {.head = "    loss", .right_aligned = true},
                                {.head = ""}}};
    const std::size_t first = evals.size() > kMostEvaluations ? evals.size() - kMostEvaluations : 0;
    for (std::size_t i = first; i < evals.size(); ++i) {
      const EvalRecord& eval = evals[i].record;
      const bool selects = eval.split == selecting;
      const bool is_best =
          selects && eval.step == figures.selecting().best_step && eval.accuracy == figures.selecting().best_accuracy;
      const bool is_saved =
          selects && eval.step == figures.best_saved_step && eval.accuracy == figures.best_saved_accuracy;
      table.rows.push_back({fmt::to_string(eval.epoch), fmt::to_string(eval.step), percent_text(eval.accuracy) + " %",
                            loss_text(eval.loss),
                            std::string(is_best ? " best" : "") + (is_saved ? " saved" : "") +
                                (eval.split == kTestSplit ? "" : " " + eval.split)});
    }
    text_ += first > 0 ? fmt::format("\nThe last {} of {} evaluations\n", kMostEvaluations, evals.size())
                       : "\nEvaluations\n";
    text_ += table.text(width_, glyphs_);
  }

  void add_classes() {
    const auto summary = finished_summary(run_);
    if (!summary) return;
    add_classes(kValidationSplit, summary->validation_classes);
    add_classes(kTestSplit, summary->classes);
  }

  void add_classes(std::string_view split, const std::vector<ClassResult>& all) {
    if (all.empty()) return;
    std::vector<ClassResult> classes = all;
    const bool shows_all = classes.size() <= kMostClassesShown;
    if (!shows_all) {
      std::ranges::stable_sort(classes, {}, [](const ClassResult& of) { return of.recall.value_or(1); });
      classes.resize(kMostClassesShown);
    }
    TextTable table = TextTable::with({"class"}, {"samples", "precision %", "recall %"});
    for (const ClassResult& of : classes)
      table.rows.push_back(
          {printable(of.name), fmt::to_string(of.samples), percent_text(of.precision), percent_text(of.recall)});
    text_ += shows_all ? fmt::format("\nClasses of the {} set\n", split)
                       : fmt::format("\nThe {} of {} classes with the lowest recall on the {} set\n", classes.size(),
                                     all.size(), split);
    text_ += table.text(width_, glyphs_);
  }

  /// Starts, restarts, faults and ends, in the order of their times.
  void add_events() {
    std::vector<std::pair<double, std::string>> events;
    for (const auto& [time, header] : run_.history.headers)
      events.emplace_back(time, header.resumed_from > 0
                                    ? fmt::format("resumes after step {}, ranks: {}", header.resumed_from, header.ranks)
                                    : fmt::format("starts, ranks: {}", header.ranks));
    for (const auto& [time, restart] : run_.history.restarts)
      events.emplace_back(time, fmt::format("restart {} by the launcher", restart.attempt));
    for (const auto& [time, fault] : run_.history.faults)
      events.emplace_back(time, fmt::format("injected {} of rank {} at step {}", fault.kind, fault.rank, fault.step));
    for (const auto& [time, end] : run_.history.ends)
      events.emplace_back(time, fmt::format("{} after step {}{}{}", name_of(end.outcome), end.steps,
                                            end.reason.empty() ? "" : ": ", end.reason));
    std::ranges::stable_sort(events, {}, [](const auto& event) { return event.first; });
    if (events.empty()) return;
    text_ += "\nEvents\n";
    for (const auto& [time, what] : events) text_ += fmt::format("  {}  {}\n", time_text(time), printable(what));
    if (const auto& saved = run_.history.checkpoints; !saved.empty())
      text_ += fmt::format("\n{} checkpoint{} written, the last after step {}\n", saved.size(),
                           saved.size() == 1 ? "" : "s", saved.back().record.step);
  }

  const Run& run_;
  const RunHeader& header_;
  std::size_t width_;
  Glyphs glyphs_;
  std::string text_;
};

/// Events as metrics.jsonl has them.
template <class Record>
Json events_of(const std::vector<Timed<Record>>& events) {
  Json list = Json::array();
  for (const auto& [time, record] : events) list.push_back(Json::parse(to_line({.time = time, .event = record})));
  return list;
}

}  // namespace

std::string description_of(const Run& run, std::size_t width, Glyphs glyphs) {
  return Description(run, width, glyphs).text();
}

Json full_json(const Run& run) {
  Json json = to_json(listed(run, run.path.filename()));
  for (const auto& [name, value] : config_of(run)) json["config"][name] = value;
  Json ranks = Json::array();
  for (const RankMeans& means : rank_means(run.history.ranks))
    ranks.push_back({{"seconds", means.seconds},
                     {"data_wait", means.data_wait},
                     {"exposed_communication", means.exposed_communication},
                     {"memory", means.memory}});
  json["ranks"] = std::move(ranks);
  json["headers"] = events_of(run.history.headers);
  json["evals"] = events_of(run.history.evals);
  json["checkpoints"] = events_of(run.history.checkpoints);
  json["restarts"] = events_of(run.history.restarts);
  json["faults"] = events_of(run.history.faults);
  json["ends"] = events_of(run.history.ends);
  return json;
}

}  // namespace gradring::train
