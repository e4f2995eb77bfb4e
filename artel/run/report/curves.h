// Plots of the curves of a run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace artel {

// The result of observe::read_metrics.
using Curves = std::map<std::string, std::vector<std::pair<int64_t, double>>>;

// SVG with one panel per metric, for training and held-out data. Empty without metrics.
std::string curves_svg(const Curves& metrics);

// The loss and one metric as text, for a terminal with `columns` columns.
std::string curves_text(const Curves& metrics, int columns, bool unicode);

}  // namespace artel
