// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/view/page/html.h"
#include "train/view/page/number_text.h"
#include "train/view/page/picture.h"

namespace gradring::train {
namespace {

constexpr int kSampleWidth = 64;
constexpr int kFilterWidth = 40;

std::string class_name(const ModelPictures& pictures, int label) {
  return page::escaped(pictures.classes.at(static_cast<std::size_t>(label)));
}

std::string share_text(std::int64_t part, std::int64_t of) {
  return of > 0 ? page::percent_text(static_cast<double>(part) / static_cast<double>(of), 1) : "–";
}

/// One row per label; a cell's colour is its share of the row.
std::string confusion_matrix(const ModelPictures& pictures) {
  const bool has_long_names = std::ranges::any_of(pictures.classes, [](const auto& name) { return name.size() > 3; });
  std::string html = fmt::format(
      R"(<figure><h3>Confusion matrix</h3><div class="wide" tabindex="0"><table class="confusion{}"><thead><tr><td></td>)",
      has_long_names ? " long" : "");
  const int classes = static_cast<int>(pictures.confusion.size());
  for (int i = 0; i < classes; ++i)
    html += fmt::format(R"(<th scope="col"><span>{}</span></th>)", class_name(pictures, i));
  html += R"(<th scope="col" class="number">recall</th></tr></thead><tbody>)";
  for (int label = 0; label < classes; ++label) {
    const auto& row = pictures.confusion[static_cast<std::size_t>(label)];
    const auto total = std::accumulate(row.begin(), row.end(), std::int64_t{0});
    html += fmt::format(R"(<tr><th scope="row">{}</th>)", class_name(pictures, label));
    for (int predicted = 0; predicted < classes; ++predicted) {
      const auto count = row[static_cast<std::size_t>(predicted)];
      const double share = total > 0 ? static_cast<double>(count) / static_cast<double>(total) : 0;
      // The square root keeps rare mistakes visible.
      html += count == 0 ? "<td>·</td>"
                         : fmt::format(R"(<td class="{}" style="--share:{:.2f}">{}</td>)",
                                       predicted == label ? "hit" : "miss", std::sqrt(share), count);
    }
    const auto hits = row[static_cast<std::size_t>(label)];
    html += fmt::format(R"(<td class="number">{}</td></tr>)", share_text(hits, total));
  }
  html += R"(<tr><th scope="row">precision</th>)";
  for (int predicted = 0; predicted < classes; ++predicted) {
    std::int64_t total = 0;
    for (const auto& row : pictures.confusion) total += row[static_cast<std::size_t>(predicted)];
    const auto hits = pictures.confusion[static_cast<std::size_t>(predicted)][static_cast<std::size_t>(predicted)];
    html += fmt::format(R"(<td class="number">{}</td>)", share_text(hits, total));
  }
  return html +
         "<td></td></tr></tbody></table></div><figcaption>Test samples: rows are labels, columns predictions. The "
         "colour is the "
         "square root of the share of the label's samples.</figcaption></figure>";
}

std::string worst_samples(const ModelPictures& pictures) {
  std::string html = "<figure><h3>Worst misclassified samples</h3>";
  if (pictures.worst.empty()) html += R"(<p class="empty">No test sample is misclassified.</p>)";
  html += R"(<div class="pictures">)";
  for (const Misclassified& each : pictures.worst) {
    const std::string text = fmt::format("test sample {}: label {}, predicted {} with {}", each.index,
                                         pictures.classes.at(static_cast<std::size_t>(each.label)),
                                         pictures.classes.at(static_cast<std::size_t>(each.predicted)),
                                         page::percent_text(each.probability, 1));
    html += fmt::format(R"(<div class="sample" title="{}">{}<div>{} → <b>{}</b><br><span>{}</span></div></div>)",
                        page::escaped(text),
                        page::image_element({.width = static_cast<std::uint32_t>(pictures.sample[1]),
                                             .height = static_cast<std::uint32_t>(pictures.sample[0]),
                                             .channels = static_cast<std::uint32_t>(pictures.sample[2]),
                                             .pixels = each.pixels},
                                            kSampleWidth, text),
                        class_name(pictures, each.label), class_name(pictures, each.predicted),
                        page::percent_text(each.probability, 1));
  }
  return html +
         "</div><figcaption>Label → <b>prediction</b> and its probability; the labels to which the model gives the "
         "least probability come first.</figcaption></figure>";
}

std::string filters(const ModelPictures& pictures) {
  const FilterImages& filters = pictures.filters;
  if (filters.images.empty()) return {};
  std::string html = R"(<figure><h3>First-layer filters</h3><div class="pictures tight">)";
  for (std::size_t i = 0; i < filters.images.size(); ++i)
    html += page::image_element(
        {.width = filters.size, .height = filters.size, .channels = filters.channels, .pixels = filters.images[i]},
        kFilterWidth, fmt::format("filter {} of {}", i, filters.layer));
  return html + fmt::format(
                    "</div><figcaption>Weights of {}, {} filters of {} × {}. Grey is 0; black is −{}, white "
                    "+{}.</figcaption></figure>",
                    page::escaped(filters.layer), filters.images.size(), filters.size, filters.size,
                    page::short_number(filters.largest), page::short_number(filters.largest));
}

}  // namespace

std::string predictions_of(const ModelPictures& pictures) {
  return fmt::format(
      R"(<p class="note">{} checkpoint, step {}, on the {} {} samples of {}: {} correct.</p><div class="stack"><div class="charts">{}{}</div>{}</div>)",
      pictures.is_best ? "Best" : "Newest", page::count_text(pictures.step), page::count_text(pictures.samples),
      pictures.split, page::escaped(pictures.dataset), page::percent_text(pictures.accuracy),
      confusion_matrix(pictures), worst_samples(pictures), filters(pictures));
}

}  // namespace gradring::train
