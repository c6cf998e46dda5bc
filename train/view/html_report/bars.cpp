// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/bars.h"

#include <fmt/format.h>

#include "train/view/page/chart.h"
#include "train/view/page/html.h"

namespace gradring::train {

std::string stacked_bar(const std::vector<BarPart>& parts, double whole, std::string (*text)(double)) {
  std::string html = R"(<div class="bar">)";
  for (const BarPart& part : parts)
    if (part.value > 0 && whole > 0)
      html += fmt::format(R"(<i class="c{}" style="width:{:.2f}%" title="{}: {}"></i>)", part.color % page::kColors,
                          100 * part.value / whole, page::escaped(part.name), page::escaped(text(part.value)));
  return html + "</div>";
}

std::string bar_legend(const std::vector<BarPart>& parts) {
  std::string html = R"(<div class="legend">)";
  for (const BarPart& part : parts)
    html +=
        fmt::format(R"(<span><i class="key c{}"></i>{}</span>)", part.color % page::kColors, page::escaped(part.name));
  return html + "</div>";
}

}  // namespace gradring::train
