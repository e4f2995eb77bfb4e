#include "artel/plan/forecast/picture.h"

#include <algorithm>
#include <vector>

#include "artel/base/text.h"
#include "artel/observe/xml_text.h"
#include "artel/plan/machines/units.h"

namespace artel::plan {
namespace {

constexpr double kWidth = 1100, kLeft = 330, kBar = 320, kRow = 34, kTop = 70;

struct Part {
  std::string_view name, colour;
  double size;
};

std::vector<Part> time_parts(const TrainingForecast& f) {
  return {{"compute", "#4477aa", f.step.compute - f.step.again},
          {"recomputation", "#66ccee", f.step.again},
          {"exchange", "#ee6677", f.step.exchange},
          {"update", "#ccbb44", f.step.update},
          {"waiting", "#bbbbbb", f.step.waiting}};
}

std::vector<Part> memory_parts(const TrainingForecast& f) {
  return {{"weights", "#4477aa", f.memory.weights},
          {"gradients", "#ee6677", f.memory.gradients},
          {"optimizer", "#ccbb44", f.memory.optimizer},
          {"activations", "#228833", f.memory.activations},
          {"buffers", "#bbbbbb", f.memory.buffers}};
}

std::string text_at(double x, double y, const std::string& text, std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, more,
                     observe::xml_text(text));
}

// A bar stacked from left to right.
std::string bar(double x, double y, const std::vector<Part>& parts, double scale) {
  std::string svg;
  for (const Part& part : parts) {
    const double width = part.size * scale;
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"16\" fill=\"{}\"/>\n", x, y,
        std::max(0.0, width), part.colour);
    x += width;
  }
  return svg;
}

std::string legend(double x, const std::vector<Part>& parts) {
  std::string svg;
  for (const Part& part : parts) {
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"46\" width=\"9\" height=\"9\" fill=\"{}\"/>\n", x,
                       part.colour);
    svg += text_at(x + 12, 54, std::string(part.name), " font-size=\"10\"");
    x += 22 + 5.5 * static_cast<double>(part.name.size());
  }
  return svg;
}

}  // namespace

std::string forecast_svg(std::string_view title, std::span<const TrainingForecast> forecasts) {
  double longest = 0, largest = 0;
  for (const TrainingForecast& f : forecasts) {
    longest = std::max(longest, f.seconds());
    largest = std::max({largest, f.memory.total(), f.pool.kind.memory});
  }
  const double right = kLeft + kBar + 80;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth, kTop + kRow * static_cast<double>(forecasts.size()) + 10);
  svg += text_at(8, 24, std::string(title), " font-size=\"15\"");
  if (!forecasts.empty()) {
    svg += legend(kLeft, time_parts(forecasts[0])) + legend(right, memory_parts(forecasts[0]));
  }
  for (size_t i = 0; i < forecasts.size(); ++i) {
    const TrainingForecast& f = forecasts[i];
    const double y = kTop + kRow * static_cast<double>(i);
    const double time_scale = longest > 0 ? kBar / longest : 0;
    const double memory_scale = largest > 0 ? kBar / largest * 0.7 : 0;
    svg += text_at(8, y + 8, fmt::format("{} workers", format_count(f.combination.workers)),
                   " font-weight=\"bold\"");
    svg += text_at(8, y + 21, to_string(f.combination));
    svg += bar(kLeft, y, time_parts(f), time_scale);
    svg += text_at(kLeft + f.seconds() * time_scale + 4, y + 12, format_long_time(f.seconds()));
    svg += bar(right, y, memory_parts(f), memory_scale);
    svg += text_at(right + f.memory.total() * memory_scale + 4, y + 12,
                   format_bytes(f.memory.total()));
    const double limit = right + f.pool.kind.memory * memory_scale;
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"black\" "
        "stroke-dasharray=\"3 2\"/>\n",
        limit, y - 4, y + 20);
  }
  return svg + "</svg>\n";
}

}  // namespace artel::plan
