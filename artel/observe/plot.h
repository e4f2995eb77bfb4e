// Line plots as SVG: training curves and benchmark results.
//
//   const artel::observe::Plot plot = {.title = "loss",
//                                      .x_label = "epoch",
//                                      .series = {{"training", {{1, 0.9}, {2, 0.5}, {3, 0.4}}}}};
//   artel::write_file_atomically("loss.svg", artel::observe::to_svg(plot));
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace artel::observe {

struct Series {
  std::string name;
  // In the order of x. Points that are not finite leave a gap, as do nonpositive ones on a
  // logarithmic axis.
  std::vector<std::pair<double, double>> points;
  bool markers = false;  // draws a dot at each point
};

struct Plot {
  std::string title;
  std::string x_label, y_label;
  std::vector<Series> series;
  bool log_x = false, log_y = false;
};

// Averages neighbouring points if the series has more than a screen can show. Sets markers if it
// has few.
Series thinned(Series series);

// Ticks of an axis from `low` to `high`: about `wanted` multiples of 1, 2, or 5 times a power of
// ten. On a logarithmic axis: powers of ten, plus 2 and 5 times those if they are few.
std::vector<double> nice_ticks(double low, double high, int wanted);
std::vector<double> log_ticks(double low, double high);

// "0", "0.25", "1,500", "20M": as short as the distance between ticks allows.
std::string tick_label(double value, double distance);

// Draws panels of 560 by 380 pixels in a row. Series with the same name have the same colour. Does
// not throw; an empty plot has axes from 0 to 1.
std::string to_svg(std::span<const Plot> panels);
std::string to_svg(const Plot& plot);

}  // namespace artel::observe
