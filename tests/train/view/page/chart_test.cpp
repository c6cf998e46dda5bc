// SPDX-License-Identifier: Apache-2.0
#include "train/view/page/chart.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>
#include <regex>
#include <string>

#include "train/view/page/drawing.h"
#include "train/view/page/html.h"
#include "train/view/page/number_text.h"

namespace gradring::train::page {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> labels_of(const std::vector<Scale::Tick>& ticks) {
  std::vector<std::string> labels;
  for (const Scale::Tick& tick : ticks) labels.push_back(tick.label);
  return labels;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Escaped, LeavesNothingThatHtmlReads) {
  EXPECT_EQ(escaped(R"(<script>a & "b" 'c'</script>)"),
            "&lt;script&gt;a &amp; &quot;b&quot; &#39;c&#39;&lt;/script&gt;");
  EXPECT_EQ(escaped("Größe → 3\t\n"), "Größe → 3\t\n");
}

TEST(ChartSize, IsBoundedWithManyMarksDotsAndGaps) {
  Chart chart{.title = "t", .series = {{.name = "s", .dots = true}}};
  for (int i = 0; i < 100'000; ++i) {
    chart.series[0].x.push_back(i);
    chart.series[0].y.push_back(i % 3 == 0 ? std::numeric_limits<double>::quiet_NaN() : i % 7);
    chart.marks.push_back({.x = static_cast<double>(i), .label = "fault"});
  }
  const std::string text = figure(chart);
  EXPECT_LE(count_of(text, "<circle"), 500u);
  EXPECT_EQ(count_of(text, "class=\"mark"), 200u);
  EXPECT_LT(text.size(), 200'000u);
  EXPECT_THAT(text, HasSubstr("One in 200 of 100,000 dots is shown. One in 500 of 100,000 marks is shown."));
  chart.marks.resize(200);
  EXPECT_THAT(figure(chart), Not(HasSubstr("marks is shown")));
}

TEST(Escaped, ReplacesBytesThatAreNotUtf8) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(escaped("a\xFF"
                    "b"),
            "a" + replacement + "b");
  EXPECT_EQ(escaped("\xC0\x80"), replacement + replacement);                    // overlong
  EXPECT_EQ(escaped("\xED\xA0\x80"), replacement + replacement + replacement);  // a surrogate
  EXPECT_EQ(escaped("\xE2\x86"), replacement + replacement);                    // cut
  EXPECT_EQ(escaped(std::string_view("\0\x1B", 2)), replacement + replacement);
}

TEST(AxisScale, HasRoundTicks) {
  EXPECT_THAT(labels_of(Scale(ScaleKind::linear, 0, 628).ticks(5)), ElementsAre("0", "200", "400", "600"));
  EXPECT_THAT(labels_of(Scale(ScaleKind::linear, 0.8, 1).ticks(5, true)),
              ElementsAre("80 %", "85 %", "90 %", "95 %", "100 %"));
  EXPECT_THAT(labels_of(Scale(ScaleKind::logarithmic, 0.002, 3).ticks(5)), ElementsAre("0.01", "0.1", "1"));
  EXPECT_THAT(labels_of(Scale(ScaleKind::linear, -1, 1).ticks(2)), ElementsAre("-1", "0", "1"));
}

TEST(AxisScale, LabelsDecadesWithFewDigits) {
  EXPECT_THAT(labels_of(Scale(ScaleKind::logarithmic, 1e-7, 10).ticks(8)),
              ElementsAre("1e-7", "1e-6", "1e-5", "1e-4", "0.001", "0.01", "0.1", "1", "10"));
  EXPECT_THAT(labels_of(Scale(ScaleKind::logarithmic, 4096, 32 << 20).ticks(8)),
              ElementsAre("10,000", "100,000", "1e6", "1e7"));
  EXPECT_THAT(labels_of(Scale(ScaleKind::logarithmic, 3e-5, 1e-3).ticks(8)),
              ElementsAre("5e-5", "1e-4", "2e-4", "5e-4", "0.001"));
  EXPECT_THAT(labels_of(Scale(ScaleKind::logarithmic, 1e-4, 0.1).ticks(5, true)),
              ElementsAre("0.01 %", "0.1 %", "1 %", "10 %"));
}

TEST(AxisScale, WidensEqualEndsAndLeavesNonPositiveOnesLinear) {
  EXPECT_DOUBLE_EQ(Scale(ScaleKind::linear, 5, 5).at(5), 1.0 / 2);
  EXPECT_DOUBLE_EQ(Scale(ScaleKind::logarithmic, 0, 10).at(5), 0.5);
  EXPECT_DOUBLE_EQ(Scale(ScaleKind::logarithmic, 1, 100).at(10), 0.5);
}

TEST(Numbers, HaveThreeDigitsAndTheirUnit) {
  EXPECT_EQ(short_number(12345.6), "12,346");
  EXPECT_EQ(short_number(0.01487), "0.0149");
  EXPECT_EQ(short_number(std::numeric_limits<double>::quiet_NaN()), "–");
  EXPECT_EQ(count_text(-1234567), "-1,234,567");
  EXPECT_EQ(seconds_text(0.0345), "34.5 ms");
  EXPECT_EQ(seconds_text(245), "4 min 5 s");
  EXPECT_EQ(percent_text(0.9955), "99.55 %");
}

TEST(Polyline, KeepsTheExtremesOfEachColumn) {
  const std::vector<GridPoint> points = {{0, 5}, {0, 1}, {0, 9}, {0, 4}, {0, 6}, {1, 2}};
  EXPECT_THAT(reduced(points),
              ElementsAre(GridPoint{0, 5}, GridPoint{0, 1}, GridPoint{0, 9}, GridPoint{0, 6}, GridPoint{1, 2}));
  EXPECT_EQ(path_through(std::vector<GridPoint>{{0, 5}, {1, 2}, {1, 2}, {3, 4}}), "M0 5l1-3 2 2");
}

TEST(Figure, IsSmallForALongSeries) {
  Series series{.name = "loss"};
  for (int i = 0; i < 100000; ++i) {
    series.x.push_back(i);
    series.y.push_back(2 + std::sin(i * 0.1) + i % 7);
  }
  const std::string html = figure({.title = "Loss", .series = {series}});
  EXPECT_LT(html.size(), 30000u);
  EXPECT_THAT(html, HasSubstr("80,000"));
}

TEST(Figure, InterruptsALineAtValuesThatAreNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string html = figure({.series = {{.x = {1, 2, 3, 4, 5}, .y = {1, 2, nan, 2, 1}}}});
  const std::size_t path = html.find("d=\"");
  EXPECT_EQ(count_of(html.substr(path, html.find('"', path + 3) - path), "M"), 2u);
  EXPECT_THAT(figure({.series = {{.x = {1}, .y = {nan}}}}), HasSubstr("No values."));
  EXPECT_THAT(figure({.y_scale = ScaleKind::logarithmic, .series = {{.x = {1, 2}, .y = {0, -1}}}}),
              HasSubstr("No values."));
}

TEST(Scale, WidensARangeThatIsOnlyRounding) {
  const Scale scale(ScaleKind::linear, 1, std::nextafter(1.0, 2.0));
  EXPECT_LT(scale.low(), 0.95);
  EXPECT_LE(scale.ticks(5).size(), 6u);
}

/// Where the labels of the x axis are, by label; in per cent.
std::map<std::string, std::string> x_ticks_of(const std::string& svg) {
  const std::regex tick(R"re(<text class="tick" x="([0-9.]+)%" y="100%" dy="1.6em"[^>]*>([^<]*)<)re");
  std::map<std::string, std::string> places;
  for (std::sregex_iterator each(svg.begin(), svg.end(), tick), end; each != end; ++each)
    places[(*each)[2]] = (*each)[1];
  return places;
}

TEST(Figure, HasEqualDecadesOnALogarithmicAxis) {
  const Chart chart{.x_scale = ScaleKind::logarithmic,
                    .x_from_zero = true,
                    .series = {{.x = {-1, 0, 1e-4, 1e-2, 1}, .y = {9, 9, 1, 2, 3}, .dots = true}},
                    .marks = {{.x = 0, .label = "nowhere"}, {.x = 1e-3, .label = "here"}}};
  const std::string html = figure(chart);
  using Places = std::map<std::string, std::string>;
  EXPECT_EQ(x_ticks_of(html),
            (Places{{"1e-4", "0.00"}, {"0.001", "25.00"}, {"0.01", "50.00"}, {"0.1", "75.00"}, {"1", "100.00"}}));
  EXPECT_EQ(count_of(html, "<circle"), 3u) << "zero and less are not on the axis";
  EXPECT_THAT(html, AllOf(HasSubstr(R"(<line x1="25.00%" x2="25.00%" y1="0" y2="100%"/>)"), Not(HasSubstr("nowhere")),
                          Not(HasSubstr(">9<"))));
}

TEST(Figure, StacksAreas) {
  const std::string html =
      figure({.stacked = true, .series = {{.x = {0, 1}, .y = {1, 1}}, {.x = {0, 1}, .y = {2, 4}}}});
  EXPECT_THAT(html, HasSubstr(">5<"));  // the axis reaches the sum
  EXPECT_EQ(count_of(html, "class=\"area"), 2u);
}

TEST(Figure, EscapesEveryText) {
  const std::string bad = "<b>\"'";
  const Chart chart{
      .title = bad,
      .caption = bad,
      .x_label = bad,
      .y_unit = bad,
      .series = {{.name = bad, .x = {1, 2}, .y = {1, 2}, .dots = true}, {.name = bad, .x = {1}, .y = {1}}},
      .marks = {{.x = 1, .label = bad, .kind = MarkKind::fault}}};
  EXPECT_THAT(figure(chart), Not(HasSubstr(bad)));
  EXPECT_THAT(figure(chart), Not(HasSubstr("<b>")));
  EXPECT_THAT(svg_file(chart), Not(HasSubstr("<b>")));
}

TEST(Chart, LeavesOutValuesWhoseDifferencesAreNoNumbers) {
  for (const ScaleKind scale : {ScaleKind::linear, ScaleKind::logarithmic}) {
    Chart chart{.title = "t", .y_scale = scale, .series = {{.x = {1, 2, 3, 4}, .y = {5e-324, 1.797e308, 1, 2}}}};
    const std::string text = figure(chart);
    EXPECT_LT(text.size(), 10'000u);
    EXPECT_THAT(text, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
    chart.series[0].y = {-1.797e308, 1.797e308, 1e308, 1e308};
    EXPECT_THAT(figure(chart), HasSubstr("No values."));
  }
}

}  // namespace
}  // namespace gradring::train::page
