// The curves of a run as pictures.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace artel {

// As observe::read_metrics gives them.
using Curves = std::map<std::string, std::vector<std::pair<int64_t, double>>>;

// A panel for each number, with training and held-out data; empty without any.
std::string curves_svg(const Curves& metrics);

// The same in characters, for a terminal with so many columns: the loss and one metric.
std::string curves_text(const Curves& metrics, int columns, bool unicode);

}  // namespace artel
