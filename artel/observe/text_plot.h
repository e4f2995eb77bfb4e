// A curve in characters, for terminals:
//
//   1 ⠉⠒⠢⠤⣀
//   0      ⠉⠒⠢⠤⣀
//     0        8
#pragma once

#include <string>

#include "artel/observe/plot.h"

namespace artel::observe {

struct TextPlot {
  int columns = 60, rows = 8;  // including labels
  bool unicode = true;         // Braille dots; otherwise ASCII
};

// Returns lines that end with a line feed. Empty if the series has fewer than two finite points or
// the size is too small.
std::string to_text(const Series& series, const TextPlot& size);

}  // namespace artel::observe
