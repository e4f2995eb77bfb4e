// Random views of an image: rotation, resized crop, and erasing.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "artel/base/error.h"
#include "artel/data/images/augment.h"
#include "artel/data/images/resize.h"

namespace artel::data {
namespace {

// A random rectangle inside an image, with drawn area share and aspect ratio.
struct Box {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

// Returns a box of height 0 if none of ten tries fits.
Box random_box(const Image& image, Random& random, float least, float most, float proportion) {
  const auto area = static_cast<double>(image.height * image.width);
  for (int tries = 0; tries < 10; ++tries) {
    const double share = random.uniform(least, most);
    const double ratio = std::exp(random.uniform(-std::log(proportion), std::log(proportion)));
    const auto height = static_cast<int64_t>(std::lround(std::sqrt(area * share / ratio)));
    const auto width = static_cast<int64_t>(std::lround(std::sqrt(area * share * ratio)));
    if (height < 1 || width < 1 || height > image.height || width > image.width) continue;
    const auto place = [&](int64_t room) {
      return static_cast<int64_t>(random.below(static_cast<uint64_t>(room + 1)));
    };
    const int64_t top = place(image.height - height);
    return {top, place(image.width - width), height, width};
  }
  return {};
}

Image turned(const Image& image, double angle) {
  Image result(image.channels, image.height, image.width);
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const double middle_y = static_cast<double>(image.height - 1) / 2;
  const double middle_x = static_cast<double>(image.width - 1) / 2;
  const auto pixel = [&](int64_t c, int64_t y, int64_t x) {
    return y < 0 || x < 0 || y >= image.height || x >= image.width ? 0.0f : image.row(c, y)[x];
  };
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x) {
      const double down = static_cast<double>(y) - middle_y;
      const double right = static_cast<double>(x) - middle_x;
      const double from_y = middle_y + cosine * down + sine * right;
      const double from_x = middle_x - sine * down + cosine * right;
      const double low_y = std::floor(from_y), low_x = std::floor(from_x);
      const auto v = static_cast<float>(from_y - low_y), u = static_cast<float>(from_x - low_x);
      const auto y0 = static_cast<int64_t>(low_y), x0 = static_cast<int64_t>(low_x);
      for (int64_t c = 0; c < image.channels; ++c)
        result.row(c, y)[x] = (1 - v) * ((1 - u) * pixel(c, y0, x0) + u * pixel(c, y0, x0 + 1)) +
                              v * ((1 - u) * pixel(c, y0 + 1, x0) + u * pixel(c, y0 + 1, x0 + 1));
    }
  return result;
}

Shape square(const Shape& shape, int64_t size, const std::string& text) {
  require(size >= 1 && size <= kMaxSide, ErrorKind::invalid_argument,
          "augmentation '{}': got {} pixels, expected 1 to {}", text, size, kMaxSide);
  return {shape[0], size, size};
}

}  // namespace

Transform rotate(float degrees) {
  const std::string text = fmt::format("rotate {}", degrees);
  require(degrees >= 0 && degrees <= 180, ErrorKind::invalid_argument,
          "augmentation '{}': got {} degrees, expected 0 to 180", text, degrees);
  return {text, true,
          [=](Image& image, Random& random) {
            image = turned(image, random.uniform(-degrees, degrees) * std::numbers::pi / 180);
          },
          [](const Shape& shape) { return shape; }};
}

Transform resized_crop(int64_t size, float least) {
  const std::string text = fmt::format("resized_crop {} {}", size, least);
  require(least > 0 && least <= 1, ErrorKind::invalid_argument,
          "augmentation '{}': got {} as the least share of the image, expected more than 0 and at "
          "most 1",
          text, least);
  return {text, true,
          [=](Image& image, Random& random) {
            const Box box = random_box(image, random, least, 1, 4.0f / 3);
            image =
                box.height == 0
                    ? covering(image, size, size)
                    : resized(window(image, box.top, box.left, box.height, box.width), size, size);
          },
          [=](const Shape& shape) { return square(shape, size, text); }};
}

Transform cover(int64_t size) {
  const std::string text = fmt::format("cover {}", size);
  return {text, false, [=](Image& image, Random&) { image = covering(image, size, size); },
          [=](const Shape& shape) { return square(shape, size, text); }};
}

Transform erase(float probability) {
  const std::string text = fmt::format("erase {}", probability);
  require(probability >= 0 && probability <= 1, ErrorKind::invalid_argument,
          "augmentation '{}': got the probability {}, expected 0 to 1", text, probability);
  return {text, true,
          [=](Image& image, Random& random) {
            if (random.uniform() >= probability) return;
            const Box box = random_box(image, random, 0.02f, 0.33f, 3.3f);
            for (int64_t c = 0; c < image.channels; ++c)
              for (int64_t y = box.top; y < box.top + box.height; ++y)
                std::fill_n(image.row(c, y) + box.left, box.width, 0.0f);
          },
          [](const Shape& shape) { return shape; }};
}

}  // namespace artel::data
