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
  int columns = 60, rows = 8;  // of the whole picture, labels included
  bool unicode = true;         // Braille dots; else plain characters
};

// Lines that end with a line feed; empty if the series has fewer than two finite points, or the
// picture would be too small to show anything.
std::string to_text(const Series& series, const TextPlot& size);

}  // namespace artel::observe
