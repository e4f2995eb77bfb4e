#include "artel/observe/text_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace artel::observe {
namespace {

// A raster with several dots per character.
class Dots {
 public:
  Dots(int columns, int rows, bool unicode)
      : unicode_(unicode),
        across_(unicode ? 2 : 1),
        down_(unicode ? 4 : 1),
        columns_(columns),
        cells_(static_cast<size_t>(columns) * static_cast<size_t>(rows)) {}

  int width() const { return columns_ * across_; }
  int height() const { return static_cast<int>(cells_.size()) / columns_ * down_; }

  void set(int x, int y) {
    // Bits of a Braille character: two columns of three dots, then the two bottom dots.
    constexpr unsigned kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    cells_[index_of(x / across_, y / down_)] |= kBits[y % down_][x % across_];
  }

  std::string row(int number) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      const unsigned cell = cells_[index_of(column, number)];
      if (cell == 0) {
        text += ' ';
      } else if (!unicode_) {
        text += '*';
      } else {
        const unsigned code = 0x2800 + cell;  // in UTF-8
        text += static_cast<char>(0xe0 | (code >> 12));
        text += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
        text += static_cast<char>(0x80 | (code & 0x3f));
      }
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

 private:
  size_t index_of(int column, int row) const {
    return static_cast<size_t>(row) * static_cast<size_t>(columns_) + static_cast<size_t>(column);
  }

  bool unicode_;
  int across_, down_, columns_;
  std::vector<unsigned> cells_;
};

}  // namespace

std::string to_text(const Series& series, const TextPlot& size) {
  std::vector<std::pair<double, double>> points;
  for (const auto& point : series.points)
    if (std::isfinite(point.second)) points.push_back(point);
  if (points.size() < 2 || points.front().first >= points.back().first) return "";
  const auto [low, high] =
      std::minmax_element(points.begin(), points.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  const double bottom = low->second, top = high->second;
  const std::string highest = fmt::format("{:.3g}", top), lowest = fmt::format("{:.3g}", bottom);
  const size_t label = std::max(highest.size(), lowest.size());
  const int columns = size.columns - static_cast<int>(label) - 1, rows = size.rows - 1;
  if (columns < 10 || rows < 2) return "";

  Dots dots(columns, rows, size.unicode);
  const double first = points.front().first, span = points.back().first - first;
  const double range = top > bottom ? top - bottom : 1;
  const auto place = [&](const std::pair<double, double>& point) {
    return std::pair((point.first - first) / span * (dots.width() - 1),
                     (top - point.second) / range * (dots.height() - 1));
  };
  for (size_t i = 1; i < points.size(); ++i) {
    const auto [x0, y0] = place(points[i - 1]);
    const auto [x1, y1] = place(points[i]);
    const int steps = 1 + static_cast<int>(std::max(std::abs(x1 - x0), std::abs(y1 - y0)));
    for (int step = 0; step <= steps; ++step) {
      const double share = static_cast<double>(step) / steps;
      dots.set(static_cast<int>(std::lround(x0 + share * (x1 - x0))),
               static_cast<int>(std::lround(y0 + share * (y1 - y0))));
    }
  }
  std::string text;
  for (int row = 0; row < rows; ++row) {
    const bool last = row + 1 == rows && top > bottom;
    text += fmt::format("{:>{}} {}", row == 0 ? highest : last ? lowest : "", label, dots.row(row));
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  const std::string begin = fmt::format("{:g}", first), end = fmt::format("{:g}", first + span);
  return text + fmt::format("{:>{}} {}{:>{}}\n", "", label, begin, end,
                            columns - static_cast<int>(begin.size()));
}

}  // namespace artel::observe
