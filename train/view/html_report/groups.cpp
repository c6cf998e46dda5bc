// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <vector>

#include "train/view/html_report/sections.h"
#include "train/view/page/document.h"
#include "train/view/page/html.h"
#include "train/view/runs/group_rows.h"

namespace gradring::train {

std::string groups_table(const RunHistory& history) {
  if (history.headers.empty() || history.headers.back().record.groups.empty()) return {};
  page::Table table{.head = {"Group", "Optimizer", "Tensors", "Parameters", "Learning rate", "Weight decay"},
                    .numeric = {false, false, true, true, true, true},
                    .rows = group_rows(history.headers.back().record.groups),
                    .caption = "Learning rates are peaks of the schedule."};
  for (std::vector<std::string>& row : table.rows)
    for (std::string& cell : row) cell = page::escaped(cell);
  return fmt::format(R"(<div class="card">{}</div>)", table.html());
}

}  // namespace gradring::train
