// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/sections.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <vector>

#include "train/view/page/chart.h"
#include "train/view/page/html.h"
#include "train/view/page/number_text.h"

namespace gradring::train {
namespace {

/// Calls visit(time) for every event.
template <class Visit>
void visit_times(const RunHistory& history, Visit visit) {
  const auto each = [&](const auto& events) {
    for (const auto& event : events) visit(event.time);
  };
  each(history.headers), each(history.steps), each(history.ranks), each(history.evals), each(history.restarts);
  each(history.checkpoints), each(history.faults), each(history.ends);
}

/// From a start to its last event in the file.
struct Span {
  double begin = 0;
  double end = 0;
};

std::vector<Span> spans_of(const RunHistory& history) {
  std::vector<Span> spans;
  for (const auto& [time, header] : history.headers) spans.push_back({time, time});
  visit_times(history, [&](double time) {
    const auto next = std::ranges::upper_bound(spans, time, {}, &Span::begin);
    if (next != spans.begin()) std::prev(next)->end = std::max(std::prev(next)->end, time);
  });
  return spans;
}

struct Unit {
  double seconds = 1;
  const char* name = "s";
};

Unit unit_of(double seconds) {
  if (seconds < 180) return {1, "s"};
  return seconds < 3 * 3600 ? Unit{60, "min"} : Unit{3600, "h"};
}

constexpr int kMarkRows = 3;
constexpr double kCharacterWidth = 0.75;  // per cent of a page's width; narrow pages show no labels

/// Draws at per cent of the width.
class Drawing {
 public:
  Drawing(double begin, double end)
      : begin_(begin),
        unit_(unit_of(end - begin)),
        scale_(page::ScaleKind::linear, 0, std::max((end - begin) / unit_.seconds, 1e-3)) {}

  void block(const char* style, double from, double to, int top, int height, const std::string& title) {
    text_ += fmt::format(
        R"(<rect class="{}" x="{:.3f}%" width="{:.3f}%" y="{}" height="{}" rx="2"><title>{}</title></rect>)", style,
        at(from), std::max(0.15, at(to) - at(from)), top, height, page::escaped(title));
  }
  void tick(double time, const std::string& title) {
    text_ += fmt::format(R"(<circle class="saved" cx="{:.3f}%" cy="76" r="3"><title>{}</title></circle>)", at(time),
                         page::escaped(title));
  }
  /// In the order of times. A label without room is a tooltip only.
  void mark(const char* kind, double time, const std::string& label) {
    const auto position = labels_.add(at(time), label);
    const int top = 4 + 14 * (position ? position->row : kMarkRows);
    text_ +=
        fmt::format(R"(<g class="mark {0}"><title>{1}</title><line x1="{2:.3f}%" x2="{2:.3f}%" y1="{3}" y2="84"/>)",
                    kind, page::escaped(label), at(time), top);
    if (position)
      text_ +=
          fmt::format(R"(<text x="{:.3f}%" dx="{}" y="{}" text-anchor="{}">{}</text>)", at(time),
                      position->is_left ? -5 : 5, top + 8, position->is_left ? "end" : "start", page::escaped(label));
    text_ += "</g>";
  }
  std::string svg() const {
    std::string axis = R"(<line class="axis" x2="100%" y1="86" y2="86"/>)";
    for (const page::Scale::Tick& tick : scale_.ticks(5))
      axis += fmt::format(R"(<text class="tick" x="{:.2f}%" y="104" text-anchor="middle">{} {}</text>)",
                          100 * scale_.at(tick.value), tick.label, unit_.name);
    return fmt::format(
        R"(<div class="plot timeline"><svg role="img" aria-label="Timeline" width="100%" height="110">{}{}</svg></div>)",
        axis, text_);
  }

 private:
  double at(double time) const { return 100 * scale_.at((time - begin_) / unit_.seconds); }

  double begin_;
  Unit unit_;
  page::Scale scale_;
  std::string text_;
  page::MarkLabels labels_{kMarkRows, kCharacterWidth};
};

struct TimedMark {
  double time = 0;
  const char* kind = "";
  std::string label{};
};

/// Of the kinds that there are.
std::string mark_legend(const RunHistory& history) {
  std::string html;
  if (!history.faults.empty()) html += R"(<span><i class="key fault"></i>fault</span>)";
  if (!history.restarts.empty()) html += R"(<span><i class="key restart"></i>restart</span>)";
  return html;
}

std::string utc(double time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(time)));
}

}  // namespace

std::string FaultGroup::label() const {
  const std::int64_t count = last_step - first_step + 1;
  return count == 1 ? fmt::format("{}, rank {}", kind, rank) : fmt::format("{} × {}, rank {}", count, kind, rank);
}

std::string FaultGroup::label_with_steps() const {
  if (first_step == last_step) return fmt::format("{}, step {}", label(), first_step);
  return fmt::format("{}, steps {} to {}", label(), first_step, last_step);
}

std::vector<FaultGroup> fault_groups_of(const RunHistory& history) {
  std::vector<FaultGroup> groups;
  for (const auto& [time, fault] : history.faults) {
    if (!groups.empty() && groups.back().kind == fault.kind && groups.back().rank == fault.rank &&
        groups.back().last_step + 1 == fault.step)
      groups.back().last_step = fault.step;
    else
      groups.push_back(
          {.kind = fault.kind, .rank = fault.rank, .time = time, .first_step = fault.step, .last_step = fault.step});
  }
  std::ranges::stable_sort(groups, {}, &FaultGroup::first_step);
  return groups;
}

std::string timeline_of(const RunHistory& history) {
  if (history.headers.empty()) return "<p>The starts are not known: metrics.jsonl has no header.</p>";
  const std::vector<Span> spans = spans_of(history);
  const double begin = spans.front().begin;
  const double end = spans.back().end;
  Drawing drawing(begin, end);
  std::string omitted;
  const auto draw = [&omitted](const char* kind, const auto& things, auto draw_one) {
    constexpr std::size_t kMost = 200;
    for (std::size_t i = 0; i < things.size(); i += page::stride_of(things.size(), kMost)) draw_one(things[i], i);
    omitted += page::omission_text(kind, things.size(), kMost);
  };
  draw("starts", spans, [&](const Span& span, std::size_t i) {
    drawing.block("trained", span.begin, span.end, 48, 18,
                  fmt::format("start {}: {}", i + 1, page::seconds_text(span.end - span.begin)));
  });
  draw("evaluations", history.evals, [&](const Timed<EvalRecord>& eval, std::size_t) {
    drawing.block(
        "evaluated", eval.time - eval.record.seconds, eval.time, 48, 18,
        fmt::format("evaluation after step {}: {}", eval.record.step, page::percent_text(eval.record.accuracy)));
  });
  draw("checkpoints", history.checkpoints, [&](const Timed<CheckpointRecord>& saved, std::size_t) {
    drawing.tick(saved.time, fmt::format("checkpoint of step {}", saved.record.step));
  });
  std::vector<TimedMark> marks;
  draw("faults", fault_groups_of(history), [&](const FaultGroup& fault, std::size_t) {
    marks.push_back({fault.time, "fault", fault.label_with_steps()});
  });
  draw("restarts", history.restarts, [&](const Timed<RestartRecord>& restart, std::size_t) {
    marks.push_back({restart.time, "restart",
                     fmt::format("restart {} after step {}", restart.record.attempt, restart.record.step)});
  });
  std::ranges::stable_sort(marks, {}, &TimedMark::time);
  for (const auto& [time, kind, label] : marks) drawing.mark(kind, time, label);
  return fmt::format(
      R"(<figure>{}<div class="legend"><span><i class="key c0"></i>training</span><span><i class="key c3"></i>evaluation</span><span><i class="key c2"></i>checkpoint</span>{}</div><figcaption>Wall time since {}. Steps that a restart repeats are shown once, where they last ran; the time before is blank.{}</figcaption></figure>)",
      drawing.svg(), mark_legend(history), utc(begin), omitted);
}

}  // namespace gradring::train
