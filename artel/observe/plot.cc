#include "artel/observe/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "artel/base/text.h"
#include "artel/observe/xml_text.h"

namespace artel::observe {
namespace {

constexpr double kWidth = 560, kHeight = 380;
constexpr double kLeft = 68, kRight = 20, kTop = 46, kBottom = 54;
constexpr size_t kMaxPoints = 500;  // per series; a screen shows no more

// Distinguishable for colour-blind readers too (Okabe and Ito's palette).
constexpr std::array<std::string_view, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#e69f00", "#56b4e9", "#555555"};

// Maps values to pixels along one axis.
class Axis {
 public:
  Axis(double low, double high, bool logarithmic, double from, double to)
      : logarithmic_(logarithmic), from_(from), to_(to) {
    if (!(low <= high)) low = logarithmic ? 0.1 : 0, high = 1;
    ticks_ = logarithmic ? log_ticks(low, high) : nice_ticks(low, high, 6);
    low_ = transformed(low);
    high_ = transformed(high);
    if (high_ - low_ < 1e-12 * std::max(1.0, std::abs(low_))) low_ -= 0.5, high_ += 0.5;
  }

  bool shows(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }
  double pixel(double value) const {
    return from_ + (transformed(value) - low_) / (high_ - low_) * (to_ - from_);
  }
  const std::vector<double>& ticks() const { return ticks_; }
  std::string label(double tick) const {
    const double distance = logarithmic_ || ticks_.size() < 2 ? tick : ticks_[1] - ticks_[0];
    return tick_label(tick, distance);
  }

 private:
  double transformed(double value) const { return logarithmic_ ? std::log10(value) : value; }

  bool logarithmic_;
  double from_, to_;
  double low_, high_;
  std::vector<double> ticks_;
};

struct Bounds {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;

  void include(double value, bool logarithmic) {
    if (!std::isfinite(value) || (logarithmic && value <= 0)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }

  // A margin, so that a curve does not touch the frame.
  void widen() {
    const double air = 0.04 * (high - low);
    if (std::isfinite(air)) low -= air, high += air;
  }
};

// Averages groups of neighbouring points.
std::vector<std::pair<double, double>> thinned(
    const std::vector<std::pair<double, double>>& points) {
  if (points.size() <= kMaxPoints) return points;
  std::vector<std::pair<double, double>> result;
  for (size_t group = 0; group < kMaxPoints; ++group) {
    const size_t begin = points.size() * group / kMaxPoints;
    const size_t end = points.size() * (group + 1) / kMaxPoints;
    double x = 0, y = 0;
    for (size_t i = begin; i < end; ++i) x += points[i].first, y += points[i].second;
    const auto count = static_cast<double>(end - begin);
    result.emplace_back(x / count, y / count);
  }
  return result;
}

std::string text_at(double x, double y, std::string_view attributes, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes,
                     xml_text(text));
}

std::string line_between(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, style);
}

std::string axes(const Plot& plot, const Axis& x, const Axis& y) {
  const double bottom = kHeight - kBottom, right = kWidth - kRight;
  std::string svg;
  for (const double tick : y.ticks()) {
    svg += line_between(kLeft, y.pixel(tick), right, y.pixel(tick), "grid");
    svg += text_at(kLeft - 8, y.pixel(tick) + 4, "text-anchor=\"end\"", y.label(tick));
  }
  for (const double tick : x.ticks()) {
    svg += line_between(x.pixel(tick), bottom, x.pixel(tick), bottom + 5, "axis");
    svg += text_at(x.pixel(tick), bottom + 19, "text-anchor=\"middle\"", x.label(tick));
  }
  svg += line_between(kLeft, bottom, right, bottom, "axis");
  svg += text_at(kWidth / 2, 24, "class=\"title\" text-anchor=\"middle\"", plot.title);
  svg += text_at((kLeft + right) / 2, kHeight - 12, "text-anchor=\"middle\"", plot.x_label);
  const double middle = (kTop + bottom) / 2;
  svg += text_at(16, middle,
                 fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 16 {:.1f})\"", middle),
                 plot.y_label);
  return svg;
}

// An SVG path that restarts after each gap.
std::string curve(const Series& series, const Axis& x, const Axis& y, std::string_view colour) {
  std::string path, dots;
  bool drawing = false;
  for (const auto& [px, py] : thinned(series.points)) {
    if (!x.shows(px) || !y.shows(py)) {
      drawing = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", drawing ? "L" : "M", x.pixel(px), y.pixel(py));
    drawing = true;
    if (series.markers)
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n",
                          x.pixel(px), y.pixel(py), colour);
  }
  return fmt::format("<path d=\"{}\" class=\"curve\" stroke=\"{}\"/>\n", path, colour) + dots;
}

// Places the legend in the upper corner with more room: falling curves leave the right one free.
std::string legend(const Plot& plot, const Axis& y, const std::vector<std::string_view>& colours) {
  size_t longest = 0;
  double left = 0, right = 0;  // mean heights of the first and last thirds of the curves
  for (const Series& series : plot.series) {
    longest = std::max(longest, series.name.size());
    const size_t count = series.points.size();
    for (size_t i = 0; i < count; ++i) {
      if (!y.shows(series.points[i].second)) continue;
      const double height = -y.pixel(series.points[i].second) / static_cast<double>(count);
      if (i < count / 3) left += height;
      if (i >= count - count / 3) right += height;
    }
  }
  const double width = 34 + 7 * static_cast<double>(longest);
  const double x = left < right ? kLeft + 10 : kWidth - kRight - width - 4;
  std::string svg = fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" "
      "class=\"box\"/>\n",
      x, kTop, width, 10 + 18 * static_cast<double>(plot.series.size()));
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const double row = kTop + 14 + 18 * static_cast<double>(i);
    svg += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"curve\" "
        "stroke=\"{}\"/>\n",
        x + 6, row, x + 22, row, colours[i]);
    svg += text_at(x + 28, row + 4, "", plot.series[i].name);
  }
  return svg;
}

// `names` are the series that already have a colour, in the order of the palette.
std::string panel(const Plot& plot, std::vector<std::string>& names) {
  Bounds horizontal, vertical;
  for (const Series& series : plot.series) {
    for (const auto& [x, y] : series.points) horizontal.include(x, plot.log_x);
    for (const auto& [x, y] : thinned(series.points)) vertical.include(y, plot.log_y);
  }
  if (!plot.log_y) vertical.widen();
  const Axis x(horizontal.low, horizontal.high, plot.log_x, kLeft, kWidth - kRight);
  const Axis y(vertical.low, vertical.high, plot.log_y, kHeight - kBottom, kTop);
  std::string svg = axes(plot, x, y);
  std::vector<std::string_view> colours;
  for (const Series& series : plot.series) {
    auto found = std::find(names.begin(), names.end(), series.name);
    if (found == names.end()) found = names.insert(names.end(), series.name);
    colours.push_back(kColours[static_cast<size_t>(found - names.begin()) % kColours.size()]);
    svg += curve(series, x, y, colours.back());
  }
  if (plot.series.size() > 1) svg += legend(plot, y, colours);
  return svg;
}

}  // namespace

Series thinned(Series series) {
  constexpr size_t most = 300, few = 60;
  series.markers = series.points.size() < few;
  const size_t group = (series.points.size() + most - 1) / most;
  if (group <= 1) return series;
  std::vector<std::pair<double, double>> means;
  for (size_t begin = 0; begin < series.points.size(); begin += group) {
    const size_t end = std::min(series.points.size(), begin + group);
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += series.points[i].second;
    means.emplace_back(series.points[end - 1].first, sum / static_cast<double>(end - begin));
  }
  series.points = std::move(means);
  return series;
}

std::vector<double> nice_ticks(double low, double high, int wanted) {
  if (!(high > low)) return {low};
  const double rough = (high - low) / std::max(1, wanted);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double mantissa = rough / power;
  const double step = power * (mantissa < 1.5 ? 1 : mantissa < 3.5 ? 2 : mantissa < 7.5 ? 5 : 10);
  std::vector<double> ticks;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i)
    ticks.push_back(i == 0 ? 0 : i * step);
  return ticks;
}

std::vector<double> log_ticks(double low, double high) {
  const auto marks = [&](std::span<const double> mantissas) {
    std::vector<double> ticks;
    for (double power = std::floor(std::log10(low)); power <= std::log10(high); ++power) {
      for (const double mantissa : mantissas) {
        const double tick = mantissa * std::pow(10, power);
        if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
      }
    }
    return ticks;
  };
  constexpr std::array<double, 3> kFine = {1, 2, 5};
  std::vector<double> ticks = marks(std::span(kFine).first(1));
  return ticks.size() >= 3 ? ticks : marks(kFine);
}

std::string tick_label(double value, double distance) {
  const double size = std::abs(value);
  if (size > 0 && size < 1e-4) return fmt::format("{:.3g}", value);
  if (size >= 1e9) return fmt::format("{:.4g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:.4g}M", value / 1e6);
  const auto digits =
      static_cast<int>(std::clamp(std::ceil(-std::log10(distance) - 1e-9), 0.0, 6.0));
  if (digits > 0 || size < 1) return fmt::format("{:.{}f}", value, digits);
  return format_count(static_cast<int64_t>(std::llround(value)));
}

std::string to_svg(std::span<const Plot> panels) {
  const double width = kWidth * static_cast<double>(std::max<size_t>(1, panels.size()));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\">\n"
      "<style>text{{font:12px sans-serif;fill:#333}}.title{{font-size:15px;font-weight:bold}}"
      ".grid{{stroke:#e5e5e5}}.axis{{stroke:#666}}.box{{fill:#fff;fill-opacity:.85}}"
      ".curve{{fill:none;stroke-width:2;stroke-linejoin:round}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, kHeight);
  std::vector<std::string> names;
  for (size_t i = 0; i < panels.size(); ++i) {
    svg += fmt::format("<g transform=\"translate({} 0)\">\n{}</g>\n",
                       kWidth * static_cast<double>(i), panel(panels[i], names));
  }
  return svg + "</svg>\n";
}

std::string to_svg(const Plot& plot) { return to_svg({&plot, 1}); }

}  // namespace artel::observe
