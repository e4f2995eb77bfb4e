#include "artel/data/images/resize.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace artel::data {
namespace {

// The filter of each pixel of a scaled line: `count` source pixels from `first[i]` on. Some have
// weight 0, such as those beyond the end of the source.
struct Taps {
  int64_t count = 0;
  std::vector<int64_t> first;
  std::vector<float> weights;  // `count` for each pixel

  const float* weights_of(int64_t i) const { return weights.data() + i * count; }
};

// The taps of the pixels [begin, end) of a line scaled by a triangle filter.
Taps triangle_taps(int64_t from, int64_t to, int64_t begin, int64_t end) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(1.0, scale);
  const auto first_of = [&](double centre) {
    return std::max<int64_t>(0, std::lround(centre - support));
  };
  const auto last_of = [&](double centre) {
    return std::min<int64_t>(from, std::lround(centre + support));
  };
  const auto centre_of = [&](int64_t i) { return (static_cast<double>(i) + 0.5) * scale; };
  Taps taps;
  for (int64_t i = begin; i < end; ++i)
    taps.count = std::max(taps.count, last_of(centre_of(i)) - first_of(centre_of(i)));
  for (int64_t i = begin; i < end; ++i) {
    const double centre = centre_of(i);
    const int64_t first = first_of(centre), last = last_of(centre);
    double sum = 0;
    std::vector<double> weights(static_cast<size_t>(taps.count));
    for (int64_t j = first; j < last; ++j) {
      const double distance = std::abs(static_cast<double>(j) + 0.5 - centre) / support;
      sum += weights[j - first] = std::max(0.0, 1 - distance);
    }
    taps.first.push_back(first);
    for (const double weight : weights) taps.weights.push_back(static_cast<float>(weight / sum));
  }
  return taps;
}

// Scales a line of pixels, which must be padded by `taps.count` pixels.
template <int64_t kCount>
void narrow_line(const Taps& taps, const float* from, std::span<float> to) {
  const int64_t count = kCount > 0 ? kCount : taps.count;
  for (size_t x = 0; x < to.size(); ++x) {
    const float* const pixels = from + taps.first[x];
    const float* const weights = taps.weights.data() + static_cast<int64_t>(x) * count;
    float sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += weights[k] * pixels[k];
    to[x] = sum;
  }
}

struct Part {
  int64_t top, left, height, width;
};

// Computes a part of a scaled picture without an intermediate picture. Each source row is read once
// by `read_row(y, lines, distance)`, with channels `distance` apart, scaled horizontally, and added
// to the output rows it contributes to.
template <typename ReadRow>
Image scaled_part(int64_t channels, PictureSize from, PictureSize to, Part part,
                  const ReadRow& read_row) {
  const Taps columns = triangle_taps(from.width, to.width, part.left, part.left + part.width);
  const Taps rows = triangle_taps(from.height, to.height, part.top, part.top + part.height);
  const auto narrow = columns.count == 3   ? narrow_line<3>
                      : columns.count == 4 ? narrow_line<4>
                                           : narrow_line<0>;
  const int64_t distance = from.width + columns.count;
  std::vector<float> lines(static_cast<size_t>(channels * distance));
  std::vector<float> line(static_cast<size_t>(part.width));
  Image result(channels, part.height, part.width);
  int64_t oldest = 0;  // of the result's rows that are not complete
  const int64_t end = std::min(from.height, rows.first.back() + rows.count);
  for (int64_t j = rows.first.front(); j < end; ++j) {
    while (rows.first[oldest] + rows.count <= j) ++oldest;
    read_row(j, lines.data(), distance);
    for (int64_t c = 0; c < channels; ++c) {
      narrow(columns, lines.data() + c * distance, line);
      for (int64_t y = oldest; y < part.height && rows.first[y] <= j; ++y) {
        const float weight = rows.weights_of(y)[j - rows.first[y]];
        float* const out = result.row(c, y);
        for (int64_t x = 0; x < part.width; ++x) out[x] += weight * line[x];
      }
    }
  }
  return result;
}

Image scaled_part(const Image& image, PictureSize to, Part part) {
  return scaled_part(image.channels, {image.height, image.width}, to, part,
                     [&](int64_t y, float* lines, int64_t distance) {
                       for (int64_t c = 0; c < image.channels; ++c)
                         std::copy_n(image.row(c, y), image.width, lines + c * distance);
                     });
}

// The middle of a picture.
Part middle_of(PictureSize size, int64_t height, int64_t width) {
  return {(size.height - height) / 2, (size.width - width) / 2, height, width};
}

// The size of a picture that keeps its proportions and covers another size.
PictureSize covering_size(PictureSize from, int64_t height, int64_t width) {
  const double scale = std::max(static_cast<double>(height) / static_cast<double>(from.height),
                                static_cast<double>(width) / static_cast<double>(from.width));
  const auto scaled = [&](int64_t side, int64_t least) {
    return std::clamp(int64_t{std::llround(static_cast<double>(side) * scale)}, least, kMaxSide);
  };
  return {scaled(from.height, height), scaled(from.width, width)};
}

}  // namespace

Image resized(const Image& image, int64_t height, int64_t width) {
  if (image.height == height && image.width == width) return image;
  return scaled_part(image, {height, width}, {0, 0, height, width});
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
  const PictureSize from = {image.height, image.width};
  const PictureSize size = covering_size(from, height, width);
  const Part part = middle_of(size, height, width);
  return size == from ? window(image, part.top, part.left, height, width)
                      : scaled_part(image, size, part);
}

Image covering(const Picture& picture, int64_t height, int64_t width) {
  const PictureSize from = {picture.height, picture.width};
  const PictureSize size = covering_size(from, height, width);
  if (size == from) return covering(to_image(picture), height, width);
  const int64_t channels = picture.channels;
  return scaled_part(channels, from, size, middle_of(size, height, width),
                     [&](int64_t y, float* lines, int64_t distance) {
                       const uint8_t* const samples =
                           picture.samples.data() + y * from.width * channels;
                       for (int64_t c = 0; c < channels; ++c)
                         for (int64_t x = 0; x < from.width; ++x)
                           lines[c * distance + x] = to_float(samples[x * channels + c]);
                     });
}

}  // namespace artel::data
