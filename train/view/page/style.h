// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::train::page {

/// train/view/page/chart.css: colours, light and dark, and charts.
extern const char* const kChartStyle;
/// train/view/page/page.css: everything else of a page.
extern const char* const kPageStyle;

}  // namespace gradring::train::page
