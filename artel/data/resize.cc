#include "artel/data/resize.h"

#include <algorithm>
#include <cmath>

namespace artel::data {
namespace {

// The source pixels [first, first + weights.size()) that one destination pixel averages.
struct Tap {
  int64_t first;
  std::vector<float> weights;
};

std::vector<Tap> triangle_taps(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(1.0, scale);
  std::vector<Tap> taps(to);
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<int64_t>(0, std::lround(centre - support));
    const auto last = std::min<int64_t>(from, std::lround(centre + support));
    double sum = 0;
    std::vector<double> weights;
    for (int64_t j = first; j < last; ++j) {
      const double distance = std::abs(static_cast<double>(j) + 0.5 - centre) / support;
      weights.push_back(std::max(0.0, 1 - distance));
      sum += weights.back();
    }
    taps[i].first = first;
    for (const double weight : weights) taps[i].weights.push_back(static_cast<float>(weight / sum));
  }
  return taps;
}

}  // namespace

Image resized(const Image& image, int64_t height, int64_t width) {
  if (image.height == height && image.width == width) return image;
  const std::vector<Tap> columns = triangle_taps(image.width, width);
  const std::vector<Tap> rows = triangle_taps(image.height, height);
  Image narrow(image.channels, image.height, width);
  for (int64_t i = 0; i < image.channels * image.height; ++i) {
    const float* from = image.row(0, i);
    float* to = narrow.row(0, i);
    for (int64_t x = 0; x < width; ++x) {
      float sum = 0;
      for (size_t k = 0; k < columns[x].weights.size(); ++k)
        sum += columns[x].weights[k] * from[columns[x].first + static_cast<int64_t>(k)];
      to[x] = sum;
    }
  }
  Image result(image.channels, height, width);
  for (int64_t c = 0; c < image.channels; ++c)
    for (int64_t y = 0; y < height; ++y) {
      float* to = result.row(c, y);
      for (size_t k = 0; k < rows[y].weights.size(); ++k) {
        const float* from = narrow.row(c, rows[y].first + static_cast<int64_t>(k));
        for (int64_t x = 0; x < width; ++x) to[x] += rows[y].weights[k] * from[x];
      }
    }
  return result;
}

Image window(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  Image result(image.channels, height, width);
  const int64_t first = std::max<int64_t>(0, -left);
  const int64_t last = std::min(width, image.width - left);
  for (int64_t c = 0; c < image.channels; ++c)
    for (int64_t y = std::max<int64_t>(0, -top); y < std::min(height, image.height - top); ++y) {
      const float* from = image.row(c, top + y) + left;
      std::copy(from + first, from + last, result.row(c, y) + first);
    }
  return result;
}

Image covering(const Image& image, int64_t height, int64_t width) {
  const double scale = std::max(static_cast<double>(height) / static_cast<double>(image.height),
                                static_cast<double>(width) / static_cast<double>(image.width));
  const auto scaled = [&](int64_t side, int64_t least) {
    return std::clamp(int64_t{std::llround(static_cast<double>(side) * scale)}, least, kMaxSide);
  };
  Image result = resized(image, scaled(image.height, height), scaled(image.width, width));
  return window(result, (result.height - height) / 2, (result.width - width) / 2, height, width);
}

}  // namespace artel::data
