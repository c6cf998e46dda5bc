// SPDX-License-Identifier: Apache-2.0
#include "train/app/rank/rank_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "train/app/rank/run_banner.h"
#include "train/app/rank/run_output.h"
#include "train/core/faults/injected_faults.h"
#include "train/core/setup/resume_command.h"
#include "train/core/setup/run_directory.h"
#include "train/core/setup/run_settings.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/trainer.h"
#include "train/core/trainer/training_state.h"
#include "train/launch/workers/worker_files.h"
#include "train/options/print_text.h"
#include "train/records/checkpoint/checkpoint_writer.h"
#include "train/records/checkpoint/error.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/line_file.h"
#include "train/records/metrics/metrics.h"
#include "train/records/metrics/progress.h"
#include "train/records/trace/run_trace.h"
#include "train/view/tensorboard/tensorboard_sink.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using Remarks = std::vector<std::string>;

/// Test images that the sinks of a new run show.
tensorboard::Tiles some_of(const data::Dataset& dataset) {
  constexpr std::int64_t kMostSamples = 25;
  tensorboard::Tiles samples{
      .height = dataset.shape()[0], .width = dataset.shape()[1], .channels = dataset.shape()[2], .images = {}};
  for (std::int64_t i = 0; i < std::min(kMostSamples, dataset.size()); ++i)
    samples.images.emplace_back(dataset.pixels(i).begin(), dataset.pixels(i).end());
  return samples;
}

/// Hooks of the thread that writes checkpoints, with its slice of the trace.
SaveHooks traced(SaveHooks hooks, kernels::TraceTrack& track) {
  using kernels::TraceTrack;
  const auto begin = std::make_shared<std::int64_t>(0);  // of the checkpoint that is being written
  return {.check = std::move(hooks.check),
          .before =
              [before = std::move(hooks.before), begin] {
                *begin = TraceTrack::now();
                before();
              },
          .saved =
              [saved = std::move(hooks.saved), begin, &track](std::int64_t step) {
                saved(step);
                if (!track.recording()) return;
                track.add({.category = kernels::TraceCategory::checkpoint,
                           .name = "write checkpoint",
                           .begin = *begin,
                           .end = TraceTrack::now(),
                           .numbers = {step}});
              }};
}

/// Rank 0's alone. After a power loss no checkpoint is of a later step than the metrics.
std::unique_ptr<CheckpointSink> make_checkpoints(RunOutput& output, const WorkerEnvironment& environment,
                                                 RunTrace* trace) {
  SaveHooks hooks{.check = [&output] { return output.check_directory(); },
                  .before = [metrics = output.directory().at(metrics_of(output.path()))] { sync_file(metrics); },
                  .saved = [file = environment.progress_file](std::int64_t step) { write_progress(file, step); }};
  if (trace) hooks = traced(std::move(hooks), trace->writer());
  return std::make_unique<CheckpointWriter>(output.checkpoints(), std::move(hooks));
}

/// What the GPU adds to the trace of a run, and what a profiler sees of any run. Without CUPTI a remark says so.
TracedDevice traced_device(const TrainConfig& config, const Compute& compute, std::vector<std::string>& remarks) {
  if (!compute.module) return {};
  TracedDevice device{.runs_ahead = true};
  if (compute.module->make_ranges) device.ranges = compute.module->make_ranges();
  if (config.trace.empty()) return device;
  if (compute.simulator) {
    remarks.emplace_back(
        "--trace: the trace has no GPU activities: the GPU is simulated, and CUPTI records what real ones execute");
    return device;
  }
  try {
    device.activities = compute.module->make_device_trace();
  } catch (const DeviceError& error) {
    remarks.push_back(fmt::format("--trace: the trace has no GPU activities: {}", error.what()));
  }
  return device;
}

/// The trace that the options ask for, or that a profiler sees; null: none.
std::unique_ptr<RunTrace> make_trace(const TrainConfig& config, const Compute& compute, comm::ProcessGroup& group,
                                     Remarks& remarks) {
  TracedDevice device = traced_device(config, compute, remarks);
  if (config.trace.empty() && !device.ranges) return nullptr;
  const TraceSpec spec{.path = config.trace,
                       .first_step = config.trace_steps.first,
                       .last_step = config.trace_steps.last,
                       .version = GRADRING_VERSION,
                       .command = own_command()};
  return std::make_unique<RunTrace>(spec, group, std::move(device));
}

/// Performs faults as slices of the trace.
InjectedFaults::Perform traced_faults(RunTrace* trace) {
  return [trace](const PlannedFault& fault) {
    const kernels::TraceScope traced(trace ? &trace->compute() : nullptr, kernels::TraceCategory::fault,
                                     trace ? trace->names().keep(std::string(name_of(fault.kind))) : "");
    print_and_perform(fault);
  };
}

FaultedRun faulted_run(const TrainConfig& config, const WorkerEnvironment& environment, const kernels::Device& device) {
  return {.world_size = environment.world_size,
          .attempt = environment.restart_count,
          .recorded = records_steps(config, device)};
}

}  // namespace

struct RankRun::FoundStart {
  /// The device is open: where it is missing, no directory is locked.
  FoundStart(RankRun& run, const Rank& /*opened*/)
      : output(run.config_, run.environment_),
        start(output.find_start()),
        sets(run.dependencies_.open_data(run.config_)),
        own(own_files(run.config_, run.environment_, sets)) {
    run.config_ = output.config();
    if (run.leads_)
      for (const std::string& remark : sets.remarks) data::print_remark(remark);
  }

  RunOutput output;
  Start start;
  Datasets sets;
  OwnFiles own;
};

struct RankRun::Built {
  Built(RankRun& run, Rank& rank, FoundStart& found);

  nn::Backend& backend(nn::Backend& inner) { return trace ? trace->backend(inner) : inner; }

  comm::ProcessGroup& group;
  Remarks remarks;
  Console out;
  MetricsFan metrics;
  std::unique_ptr<RunTrace> trace;
  InjectedFaults faults;
  Trainer trainer;
};

RankRun::Built::Built(RankRun& run, Rank& rank, FoundStart& found)
    : group((run.dependencies_.before_join(), rank.join(run.config_, run.environment_))),
      remarks(check_ranks_agree(group, run.config_, rank.compute(), found.own)),
      trace(make_trace(run.config_, rank.compute(), group, remarks)),
      faults(run.config_.faults, faulted_run(run.config_, run.environment_, *rank.compute().device),
             run.environment_.rank, traced_faults(trace.get())),
      trainer(run.config_, {.device = *rank.compute().device,
                            .kernels = rank.compute().kernels,
                            .backend = backend(faults.backend(*rank.compute().backend)),
                            .group = group,
                            .train_set = *found.sets.train_set,
                            .test_set = *found.sets.test_set,
                            .validation_set = found.sets.validation_set.get(),
                            .metrics = metrics,
                            .requests = run.requests_ ? &*run.requests_ : nullptr,
                            .step_hook = &faults,
                            .others = rank.further(),
                            .trace = trace.get(),
                            .data = found.own.hashes}) {
  begin_training(trainer, run.config_, group, found.start);
}

/// What a run writes while it trains, from its first record on.
struct RankRun::Outputs {
  Outputs(RankRun& run, const Rank& rank, FoundStart& found, Built& built);

  TrainConfig resolved;  // without `auto`
  std::unique_ptr<CheckpointSink> checkpoints;
  RankLog* log = nullptr;  // one of the trainer's metrics

 private:
  void open_reports(const RankRun& run, const FoundStart& found, Built& built);
  void write_start(const RankRun& run, const Rank& rank, const FoundStart& found, Built& built) const;
};

RankRun::Outputs::Outputs(RankRun& run, const Rank& rank, FoundStart& found, Built& built)
    : resolved(resolved_config(run.config_, rank.compute(), run.environment_)) {
  Trainer& trainer = built.trainer;
  found.output.check_files(built.group);
  Remarks remarks = std::move(found.start.remarks);
  if (normalizes_by_data(run.config_)) {
    resolved.normalize = {
        .kind = NormalizeOption::Kind::values, .mean = trainer.facts().mean, .std = trainer.facts().std};
    std::ranges::move(blank_channels(trainer.facts()), std::back_inserter(remarks));
  }
  std::ranges::move(built.remarks, std::back_inserter(remarks));
  std::ranges::move(found.output.open(resolved, trainer.progress()), std::back_inserter(remarks));
  if (run.leads_) {
    checkpoints = make_checkpoints(found.output, run.environment_, built.trace.get());
    trainer.save_to(*checkpoints, [&output = found.output](Remarks& skipped) {
      return newest_checkpoint(output.files(), checkpoints_of(output.path()), skipped);
    });
  }
  // From here on a request to stop is not an end before the start: the first step answers it.
  if (run.requests_)
    run.requests_->at({.doing = "starting", .steps = trainer.progress().steps, .epoch = trainer.progress().epoch});
  found.output.share(built.group);
  run.shown_dir_ = run.leads_ ? found.output.shown_path() : found.output.directory().path();
  if (built.trace) built.trace->write_in(found.output.directory());
  open_reports(run, found, built);
  log->say(fmt::format("rank {} of {}, process {}{}: {} by {}", run.environment_.rank, run.environment_.world_size,
                       ::getpid(), run.environment_.launcher.empty() ? "" : ", started by " + run.environment_.launcher,
                       rank.compute().device->description(), rank.compute().backend->name()));
  for (const std::string& remark : rank.compute().remarks) log->say(remark);
  if (run.leads_)
    for (const std::string& remark : found.sets.remarks) log->say(remark);
  found.output.begin();
  write_start(run, rank, found, built);
  for (const std::string& remark : remarks) built.metrics.remark(remark);
  if (run.leads_ && trainer.is_over())
    built.metrics.remark(fmt::format("the training is already complete at step {}: nothing is trained; {}",
                                     trainer.progress().steps, longer_advice(run.config_, trainer.end())));
  for (const std::string& remark : built.faults.remarks()) built.metrics.remark(remark);
  if (const auto steps = trainer.progress().steps) log->say(fmt::format("resumes after step {}", steps));
}

/// Rank 0's metrics and progress display, and every rank's log.
void RankRun::Outputs::open_reports(const RankRun& run, const FoundStart& found, Built& built) {
  const Directory& run_dir = found.output.directory();
  if (run.leads_) {
    built.metrics.add(std::make_unique<JsonLinesSink>(run_dir.at(metrics_of(run_dir.path()))));
    if (logs_to(run.config_, kTensorBoard))
      built.metrics.add(std::make_unique<tensorboard::TensorBoardSink>(run_dir.at(tensorboard_of(run_dir.path())),
                                                                       some_of(*found.sets.test_set)));
    if (run.shows_remarks()) built.metrics.add(make_progress(run.config_.progress, built.out));
    if (run.dependencies_.observer) built.metrics.add(run.dependencies_.observer());
  }
  const fs::path path = log_file(run_dir.path(), run.environment_.rank);
  auto opened = std::make_unique<RankLog>(run_dir.at(path));
  log = opened.get();
  built.metrics.add(std::move(opened));
  built.out.on_failure([log = log, path](const std::string& message) {
    print_to_stderr(fmt::format("gradring train: {}; training continues, see {}\n", message, path.string()));
    log->say(message + "; training continues");
  });
}

/// The first records, and what rank 0 prints before the first step.
void RankRun::Outputs::write_start(const RankRun& run, const Rank& rank, const FoundStart& found, Built& built) const {
  MetricsFan& metrics = built.metrics;
  const RunHeader header = run_header(resolved, rank.compute(), built.trainer, run.environment_);
  metrics.event(header);
  if (run.environment_.restart_count > 0)
    metrics.event(RestartRecord{.step = built.trainer.progress().steps, .attempt = run.environment_.restart_count});
  built.faults.announce_to([&metrics](const PlannedFault& fault) {
    metrics.event(FaultRecord{.step = fault.step, .rank = fault.rank, .kind = std::string(name_of(fault.kind))});
  });
  if (run.leads_ && run.config_.progress != ProgressStyle::none)
    print_start(built.out, header, found.output.shown_path(), found.output.shown_source());
}

RankRun::RankRun(const TrainConfig& config, const WorkerEnvironment& environment, KeptAlive& kept,
                 RunDependencies dependencies)
    : config_(config),
      environment_(environment),
      leads_(environment.rank == 0),
      kept_(kept),
      dependencies_(std::move(dependencies)) {
  if (dependencies_.takes_signals)
    requests_.emplace(fmt::format("rank {} of {}", environment.rank, environment.world_size));
}

int RankRun::run() {
  try {
    train();
    return kOk;
  } catch (const Preempted& stopped) {
    if (leads_)
      print_to_stderr(fmt::format("gradring train: {}; to resume:\n  {}\n", stopped.what(),
                                  resume_command(started_by(environment_), shown_dir_)));
    return requests_ ? requests_->exit_code() : kPreempted;
  }
}

Summary RankRun::train() {
  Rank& rank = kept_.make<Rank>(config_, environment_);
  FoundStart found(*this, rank);
  if (config_.autotune && found.start.resume)
    if (const std::string remark = rank.keep_plans(found.start.resume->checkpoint); !remark.empty())
      found.start.remarks.push_back(remark);
  check_plan(config_, rank.compute(), *found.sets.train_set, found.sets.selecting(), environment_);
  Built built(*this, rank, found);
  if (const auto finished = finished_before(found, built)) return *finished;
  const Outputs outputs(*this, rank, found, built);
  Summary summary = train_or_report(rank, found, built, outputs);
  close(summary, found, built);
  return summary;
}

std::optional<Summary> RankRun::finished_before(FoundStart& found, Built& built) {
  const auto summary = found.output.finished_before(built.trainer.progress(), built.trainer.is_over());
  const std::string agreed = built.group.broadcast_on_host(summary ? summary->to_json() : std::string(), 0);
  if (agreed.empty()) return std::nullopt;
  shown_dir_ = found.output.shown_path();
  if (summary && shows_remarks())
    print_finished(built.out,
                   finished_run(*summary, config_, built.trainer.end(), started_by(environment_), found.output));
  finish_output(built.out);
  return Summary::from_json(agreed);
}

Summary RankRun::train_or_report(const Rank& rank, FoundStart& found, Built& built, const Outputs& outputs) {
  try {
    return train_and_record(rank, found, built);
  } catch (const LostDirectoryError&) {
    throw;  // what is still open may be another run's
  } catch (const std::exception& error) {
    outputs.log->say(fmt::format("training ended: {}", error.what()));
    if (built.trace)
      if (const fs::path part = built.trace->abandon(error.what()); !part.empty())
        outputs.log->say(fmt::format("the events of this rank alone are in {}", part.string()));
    const TrainingProgress& made = built.trainer.progress();
    if (!dynamic_cast<const Preempted*>(&error)) built.metrics.event(end_of(error, made));
    found.output.fail(unfinished_run(error, made, outputs.resolved, environment_.world_size));
    if (leads_) shown_dir_ = found.output.shown_path();
    throw;
  }
}

/// Records that are missing from a file are an error, also of a run that was asked to stop.
Summary RankRun::train_and_record(const Rank& rank, FoundStart& found, Built& built) {
  const auto record = [&](const RunEvent& last) {
    check_simulation(rank.compute());
    for (const std::string& remark : found.output.check_directory()) built.metrics.remark(remark);
    built.metrics.event(last);
    built.metrics.finish();
    if (built.trace) built.trace->finish();
  };
  try {
    Summary summary = built.trainer.run();
    built.trainer.check_updates();
    record(end_of(summary));
    return summary;
  } catch (const Preempted& request) {
    record(end_of(request, built.trainer.progress()));
    throw;
  }
}

void RankRun::close(const Summary& summary, FoundStart& found, Built& built) const {
  for (const std::string& remark : built.faults.closing_remarks())
    print_to_stderr(fmt::format("gradring train: {}\n", remark));
  if (!leads_) return;
  found.output.finish(summary);
  if (config_.progress != ProgressStyle::none)
    print_result(built.out,
                 finished_run(summary, config_, built.trainer.end(), started_by(environment_), found.output));
  finish_output(built.out);
}

bool RankRun::shows_remarks() const { return config_.progress != ProgressStyle::none || !dependencies_.observer; }

/// Lost output is an error, unless a launcher would restart the complete run because of it.
void RankRun::finish_output(Console& out) const {
  try {
    out.finish();
  } catch (const EnvironmentError&) {
    if (environment_.max_restarts == 0) throw;
  }
}

void dry_run(const TrainConfig& config, const WorkerEnvironment& environment) {
  const Rank rank(config, environment);
  const Compute& compute = rank.compute();
  PosixFileSystem files;
  if (environment.rank == 0) find_start(config, named_run_dir(config.run_dir), files, environment.restart_count > 0);
  const Datasets sets = open_datasets(config);
  check_plan(config, compute, *sets.train_set, sets.selecting(), environment, true);
  plan_faults(config.faults, faulted_run(config, environment, *compute.device));
  if (environment.rank != 0) return;
  for (const std::string& remark : sets.remarks) data::print_remark(remark);
  print_text("{}: {} training and {} test samples of {}; {} by {}; nothing was trained (--dry-run)\n",
             sets.train_set->name(), sets.train_set->size(), sets.test_set->size(), sets.train_set->shape().to_string(),
             compute.device->description(), compute.backend->name());
}

}  // namespace gradring::train
