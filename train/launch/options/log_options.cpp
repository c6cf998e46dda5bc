// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/error.h"
#include "train/launch/logs/stream_map.h"
#include "train/launch/options/option.h"
#include "train/launch/options/value.h"

namespace gradring::train {
namespace {

void read_log_dir(LaunchDraft& draft, const std::string& value) {
  if (value.empty()) throw InvalidArgument("must be a folder");
  draft.options.logs.folder = value;
}

void read_redirects(LaunchDraft& draft, const std::string& value) {
  draft.options.logs.redirects = StreamMap::from_text(value);
}

void read_tee(LaunchDraft& draft, const std::string& value) { draft.options.logs.tee = StreamMap::from_text(value); }

void read_filter(LaunchDraft& draft, const std::string& value) {
  draft.options.logs.shown.clear();
  for (const std::string& rank : comma_separated(value))
    draft.options.logs.shown.push_back(whole_number(rank, 0, 65535));
}

void read_prefix(LaunchDraft& draft, const std::string& value) { draft.options.logs.prefix = value; }

void read_logs_specs(LaunchDraft&, const std::string& value) {
  if (value != "default") throw InvalidArgument("there are no plug-ins for logs here: leave it out");
}

constexpr Option kOptions[] = {
    {"log-dir", 0, "DIR", "keep DIR/<run id>/attempt_<n>/<local rank>/{stdout.log,stderr.log,error.json}",
     read_log_dir},
    {"redirects", 'r', "MAP",
     "streams that go into those files: 0 none, 1 stdout, 2 stderr, 3 both; or by local rank: "
     "0:3,12:1 (default 0)",
     read_redirects},
    {"tee", 't', "MAP", "streams that go there and, line by line with a prefix, to the terminal (default 0)", read_tee},
    {"local-ranks-filter", 0, "LIST", "show the output of these local ranks only (default: all)", read_filter},
    {"log-prefix", 0, "TEXT",
     "before each line of --tee; knows ${role_name}, ${rank}, ${local_rank}, ${node_rank}, "
     "${time} (default [${role_name}${local_rank}]:, or TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE)",
     read_prefix, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"},
    {"logs-specs", 0, "NAME", "default (default default)", read_logs_specs},
};

}  // namespace

std::span<const Option> log_options() { return kOptions; }

}  // namespace gradring::train
