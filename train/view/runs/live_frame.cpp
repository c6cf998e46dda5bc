// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/live_frame.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <span>

#include "train/records/metrics/byte_text.h"

namespace gradring::train {
namespace {

double fraction_of(const RunFigures& figures) {
  return figures.total_steps > 0
             ? std::clamp(static_cast<double>(figures.steps) / static_cast<double>(figures.total_steps), 0.0, 1.0)
             : 0;
}

std::string share(std::optional<double> fraction) { return fraction ? fmt::format("{:.1f} %", 100 * *fraction) : "-"; }

std::string steps_of(const Run& run) {
  const RunFigures& figures = run.figures;
  return figures.total_steps > 0 ? fmt::format("step {}/{}", figures.steps, figures.total_steps)
                                 : fmt::format("step {}", figures.steps);
}

std::string epoch_of(const Run& run) {
  return run.history.steps.empty() ? "" : fmt::format("epoch {}  ", run.history.steps.back().record.epoch);
}

/// "[#####-----]  43 %"
std::string bar_of(double fraction, std::size_t columns) {
  const auto filled = static_cast<std::size_t>(fraction * static_cast<double>(columns));
  return fmt::format("[{}{}] {:3.0f} %", std::string(filled, '#'), std::string(columns - filled, '-'), 100 * fraction);
}

/// How urgent it is to see a rank.
int urgency(RankState state) {
  switch (state) {
    case RankState::failed:
    case RankState::lost: return 3;
    case RankState::stalled: return 2;
    case RankState::slow: return 1;
    default: return 0;
  }
}

LineStyle style_of(RankState state) {
  const int urgent = urgency(state);
  return urgent >= 2 ? LineStyle::error : urgent == 1 ? LineStyle::warning : LineStyle::normal;
}

/// The newest events but training steps, the last one last.
std::vector<std::string> newest_events(const Run& run, std::size_t most) {
  std::vector<std::pair<double, std::string>> events;
  const RunHistory& history = run.history;
  const auto newest = [most](const auto& all) { return std::span(all).last(std::min(most, all.size())); };
  for (const auto& [time, eval] : newest(history.evals))
    events.emplace_back(time, fmt::format("evaluation after step {}: accuracy {} %, loss {}", eval.step,
                                          percent_text(eval.accuracy), loss_text(eval.loss)));
  for (const auto& [time, saved] : newest(history.checkpoints))
    events.emplace_back(time, fmt::format("checkpoint of step {} written", saved.step));
  for (const auto& [time, restart] : newest(history.restarts))
    events.emplace_back(time, fmt::format("restart {} after step {}", restart.attempt, restart.step));
  for (const auto& [time, fault] : newest(history.faults))
    events.emplace_back(time, fmt::format("injected {} of rank {} at step {}", fault.kind, fault.rank, fault.step));
  std::ranges::stable_sort(events, {}, [](const auto& event) { return event.first; });
  std::vector<std::string> texts;
  for (std::size_t i = events.size() - std::min(events.size(), most); i < events.size(); ++i)
    texts.push_back(
        fmt::format("  {:%H:%M:%S}  {}", fmt::localtime(static_cast<std::time_t>(events[i].first)), events[i].second));
  return texts;
}

std::vector<FrameLine> rank_lines(std::vector<RankRow> rows, std::size_t most_lines, std::size_t width, Glyphs glyphs) {
  const std::size_t most = std::max<std::size_t>(most_lines, 3) - 1;  // below the head
  std::size_t hidden = 0;
  if (rows.size() > most) {
    std::ranges::stable_sort(rows, std::greater(), [](const RankRow& row) { return urgency(row.state); });
    hidden = rows.size() - (most - 1);
    rows.resize(most - 1);
  }
  TextTable table{.columns = {{.head = "rank", .right_aligned = true},
                              {.head = "state"},
                              {.head = "   step", .right_aligned = true},
                              {.head = "steps/s", .right_aligned = true},
                              {.head = "   data", .right_aligned = true},
                              {.head = "   comm", .right_aligned = true},
                              {.head = "    memory", .right_aligned = true},
                              {.head = "   loss", .right_aligned = true},
                              {.head = "", .least = 1}}};
  for (const RankRow& row : rows)
    table.rows.push_back(
        {fmt::to_string(row.rank), std::string(name_of(row.state)), row.step > 0 ? fmt::to_string(row.step) : "-",
         row.steps_per_second ? fmt::format("{:.1f}", *row.steps_per_second) : "-", share(row.data_wait),
         share(row.communication), row.memory ? memory_text(*row.memory) : "-", loss_text(row.loss), row.note});
  std::vector<FrameLine> lines;
  const std::string text = table.text(width, glyphs);
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1)
    lines.push_back({.text = text.substr(begin, end - begin),
                     .style = lines.empty() ? LineStyle::strong : style_of(rows[lines.size() - 1].state)});
  if (hidden > 0) lines.push_back({.text = fmt::format("     and {} more ranks", hidden)});
  return lines;
}

}  // namespace

std::vector<FrameLine> frame_of(const LiveRun& live, double now, TerminalSize size, Glyphs glyphs) {
  const Run& run = live.run();
  const RunHeader& header = run.header();
  std::vector<FrameLine> lines;
  const auto add = [&](const std::string& text, LineStyle style = LineStyle::normal) {
    lines.push_back({.text = shortened(text, size.columns, glyphs), .style = style});
  };
  add(fmt::format("{}: {}{}{}", run.path.string(), name_of(run.state), run.reason.empty() ? "" : ", ", run.reason),
      run.state == RunState::failed ? LineStyle::error : LineStyle::strong);
  if (!header.model.empty())
    add(fmt::format("{} on {}, {}, {} rank{}, {}", header.model, header.dataset, header.precision, header.ranks,
                    header.ranks == 1 ? "" : "s", header.device));
  const auto left = live.time_left();
  const std::string progress =
      fmt::format("{}{}  {}{}", epoch_of(run), steps_of(run), duration_text(run.figures.seconds),
                  left ? fmt::format(", {} left", duration_text(*left)) : "");
  constexpr std::size_t kBarFrame = 10;
  const std::size_t text_columns = columns_of(progress) + kBarFrame;
  add(run.figures.total_steps > 0 && size.columns > text_columns + 8
          ? fmt::format("{}  {}",
                        bar_of(fraction_of(run.figures), std::min<std::size_t>(size.columns - text_columns, 40)),
                        progress)
          : progress);
  const std::string loss = fmt::format("loss {}  ", loss_text(run.figures.last_loss));
  add(loss +
      sparkline(live.losses(), std::min<std::size_t>(size.columns - std::min(size.columns, loss.size()), 60), glyphs));
  const auto pace = live.pace();
  std::string results =
      pace && run.state == RunState::running
          ? fmt::format("{:.1f} steps/s, {:.0f} samples/s", *pace, *pace * static_cast<double>(header.global_batch))
          : fmt::format("{:.0f} samples/s", run.figures.samples_per_second.value_or(0));
  if (const SplitFigures& evaluated = run.figures.selecting(); evaluated.last_accuracy)
    results += fmt::format("; accuracy {} %, best {} % (step {})", percent_text(evaluated.last_accuracy),
                           percent_text(evaluated.best_accuracy), evaluated.best_step);
  add(results);
  add("");
  const std::vector<std::string> events = newest_events(run, size.rows > 20 ? 3 : 0);
  const std::size_t below = events.empty() ? 1 : events.size() + 2;
  const std::size_t space = size.rows > lines.size() + below ? size.rows - lines.size() - below : 0;
  for (FrameLine& line : rank_lines(live.ranks(now), space, size.columns, glyphs)) lines.push_back(std::move(line));
  if (!events.empty()) add("");
  for (const std::string& event : events) add(event);
  if (lines.size() >= size.rows) lines.resize(size.rows - 1);
  return lines;
}

std::string line_of(const LiveRun& live, double now) {
  const Run& run = live.run();
  std::string text = fmt::format("{:%Y-%m-%d %H:%M:%S}  {}  {}{}", fmt::localtime(static_cast<std::time_t>(now)),
                                 name_of(run.state), epoch_of(run), steps_of(run));
  if (run.figures.total_steps > 0) text += fmt::format(" ({:.0f} %)", 100 * fraction_of(run.figures));
  if (run.figures.last_loss) text += fmt::format("  loss {}", loss_text(run.figures.last_loss));
  if (const auto pace = live.pace(); pace && run.state == RunState::running)
    text += fmt::format("  {:.1f} steps/s", *pace);
  if (const auto left = live.time_left()) text += fmt::format("  {} left", duration_text(*left));
  if (const auto accuracy = run.figures.selecting().last_accuracy)
    text += fmt::format("  accuracy {} %", percent_text(accuracy));
  constexpr std::size_t kMostNamed = 4;
  std::size_t urgent = 0;
  for (const RankRow& row : live.ranks(now))
    if (urgency(row.state) > 0 && ++urgent <= kMostNamed)
      text += fmt::format("  rank {} {}{}{}", row.rank, name_of(row.state), row.note.empty() ? "" : ": ", row.note);
  if (urgent > kMostNamed) text += fmt::format("  and {} more", urgent - kMostNamed);
  return text;
}

}  // namespace gradring::train
