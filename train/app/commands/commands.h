// SPDX-License-Identifier: Apache-2.0
// The commands of the program, but for launch and bench.
#pragma once

#include "train/options/commands.h"

namespace gradring::train {

extern const Command kTrainCommand, kPlanCommand, kLrFindCommand, kEvalCommand, kPredictCommand, kExportCommand,
    kDoctorCommand, kReportCommand;
extern const Command kCkptLs, kCkptVerify, kCkptDiff, kCkptInspect, kCkptPrune;
extern const Command kTopCommand;
extern const Command kModelShow;
extern const Command kRunsLs, kRunsShow, kRunsCompare, kRunsRm, kRunsExport;
extern const Command kDataFetch, kDataVerify, kDataInfo, kDataCacheLs, kDataCacheRm;
extern const Command kTraceSummary;

}  // namespace gradring::train
