#include "artel/run/report/curves.h"

#include <fmt/format.h>

#include <algorithm>

#include "artel/observe/plot.h"
#include "artel/observe/text_plot.h"

namespace artel {
namespace {

observe::Series series_of(const std::string& name,
                          const std::vector<std::pair<int64_t, double>>& points) {
  return observe::thinned({.name = name, .points = {points.begin(), points.end()}});
}

bool is_no_curve(const std::string& key, const std::string& name) {
  return name == "learning_rate" || key.starts_with("cluster/");
}

// Loss and accuracy first, then other metrics.
std::vector<std::string> curves_of(const Curves& metrics) {
  std::vector<std::string> names = {"loss", "accuracy"};
  for (const auto& [key, points] : metrics) {
    const std::string name = key.substr(key.find('/') + 1);
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    if (!known && !is_no_curve(key, name)) names.push_back(name);
  }
  return names;
}

}  // namespace

std::string curves_svg(const Curves& metrics) {
  std::vector<observe::Plot> panels;
  for (const std::string& name : curves_of(metrics)) {
    observe::Plot plot{.title = name, .x_label = "step", .y_label = name, .series = {}};
    for (const std::string part : {"train", "validation", "test"})
      if (const auto found = metrics.find(part + "/" + name); found != metrics.end())
        plot.series.push_back(series_of(part, found->second));
    if (!plot.series.empty()) panels.push_back(std::move(plot));
  }
  return panels.empty() ? "" : observe::to_svg(panels);
}

std::string curves_text(const Curves& metrics, int columns, bool unicode) {
  constexpr int kMostColumns = 78, kRows = 9;
  std::string text;
  for (const char* name :
       {"train/loss", "test/accuracy", "validation/accuracy", "test/loss", "validation/loss"}) {
    const auto found = metrics.find(name);
    if (found == metrics.end()) continue;
    const std::string curve = observe::to_text(
        series_of(name, found->second),
        {.columns = std::min(columns, kMostColumns), .rows = kRows, .unicode = unicode});
    if (!curve.empty()) text += fmt::format("{}\n{}\n", name, curve);
    if (!text.empty() && found->first != "train/loss") break;
  }
  return text;
}

}  // namespace artel
