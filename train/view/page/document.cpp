// SPDX-License-Identifier: Apache-2.0
#include "train/view/page/document.h"

#include <fmt/format.h>

#include "train/view/page/generator.h"
#include "train/view/page/html.h"
#include "train/view/page/style.h"

namespace gradring::train::page {

std::string document(std::string_view title, std::string_view body) {
  // The policy keeps a page harmless even if something were not escaped.
  return fmt::format(
      R"({}<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{}</title>
<style>
{}{}</style>
</head>
<body>
<main>
{}</main>
</body>
</html>
)",
      kPageBegin, escaped(title), kChartStyle, kPageStyle, body);
}

std::string section(std::string_view heading, std::string_view body, std::string_view note) {
  const std::string text = note.empty() ? std::string() : fmt::format(R"(<p class="note">{}</p>)", escaped(note));
  return fmt::format("<section>\n<h2>{}</h2>{}\n{}\n</section>\n", escaped(heading), text, body);
}

std::string legend(const std::vector<std::pair<std::string, int>>& names) {
  if (names.empty()) return {};
  std::string html = R"(<div class="legend">)";
  for (const auto& [name, color] : names)
    html += fmt::format(R"(<span><i class="key c{}"></i>{}</span>)", color % kColors, escaped(name));
  return html + "</div>";
}

std::string stacked_bar(const std::vector<BarPart>& parts, double whole, std::string (*text)(double)) {
  std::string html = R"(<div class="bar">)";
  for (const BarPart& part : parts)
    if (part.value > 0 && whole > 0)
      html += fmt::format(R"(<i class="c{}" style="width:{:.2f}%" title="{}: {}"></i>)", part.color % kColors,
                          100 * part.value / whole, escaped(part.name), escaped(text(part.value)));
  return html + "</div>";
}

std::string chart_grid(const std::vector<std::string>& figures) {
  std::string text = R"(<div class="charts">)";
  for (const std::string& figure : figures) text += figure;
  return text + "</div>";
}

std::string Table::html() const {
  const auto cell = [&](const char* tag, std::size_t column, const std::string& content) {
    const bool is_numeric = column < numeric.size() && numeric[column];
    return fmt::format("<{0}{1}>{2}</{0}>", tag, is_numeric ? R"( class="number")" : "", content);
  };
  std::string text = R"(<div class="wide" tabindex="0"><table>)";
  if (!caption.empty()) text += fmt::format("<caption>{}</caption>", escaped(caption));
  text += "<thead><tr>";
  for (std::size_t i = 0; i < head.size(); ++i) text += cell("th", i, head[i]);
  text += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    text += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) text += cell("td", i, row[i]);
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>";
}

}  // namespace gradring::train::page
