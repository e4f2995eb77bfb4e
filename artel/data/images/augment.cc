#include "artel/data/images/augment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/data/images/resize.h"

namespace artel::data {
namespace {

Shape same_shape(const Shape& shape) { return shape; }

Shape cropped(const Shape& shape, int64_t size, int64_t padding, const std::string& text) {
  const int64_t smallest = std::min(shape[1], shape[2]) + 2 * padding;
  require(size >= 1 && size <= smallest, ErrorKind::shape,
          "augmentation '{}': a square of {} does not fit into images of {}", text, size,
          to_string(shape));
  return {shape[0], size, size};
}

// The square in the middle of an image with `padding` zeros on each side.
Transform middle_crop(int64_t size, int64_t padding) {
  const std::string text = fmt::format("centre_crop {}", size);
  return {text, false,
          [=](Image& image, Random&) {
            image = window(image, (image.height - size) / 2, (image.width - size) / 2, size, size);
          },
          [=](const Shape& shape) { return cropped(shape, size, padding, text); }};
}

void clamp(Image& image) {
  for (float& pixel : image.pixels) pixel = std::clamp(pixel, 0.0f, 1.0f);
}

// Moves each pixel away from (factor > 1) or towards (factor < 1) `pivot`.
void spread(Image& image, float pivot, float factor) {
  for (float& pixel : image.pixels) pixel = pivot + (pixel - pivot) * factor;
  clamp(image);
}

float mean(const Image& image) {
  double sum = 0;
  for (const float pixel : image.pixels) sum += pixel;
  return static_cast<float>(sum / static_cast<double>(image.pixels.size()));
}

void saturate(Image& image, float factor) {
  if (image.channels != 3) return;
  const int64_t plane = image.height * image.width;
  float* red = image.pixels.data();
  float *green = red + plane, *blue = green + plane;
  for (int64_t i = 0; i < plane; ++i) {
    const float grey = 0.299f * red[i] + 0.587f * green[i] + 0.114f * blue[i];
    for (float* channel : {red, green, blue}) channel[i] = grey + (channel[i] - grey) * factor;
  }
  clamp(image);
}

// A number from the Gamma(shape, 1) distribution (Marsaglia and Tsang, 2000).
double gamma(Random& random, double shape) {
  if (shape < 1) {
    const double u = 1.0 - random.uniform();
    return gamma(random, shape + 1) * std::pow(u, 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), u = 1.0 - random.uniform();
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

// The words of "name number number ...".
struct TransformWords {
  std::string text, name;
  std::vector<float> numbers;

  explicit TransformWords(const std::string& written) : text(written) {
    for (const std::string& word : artel::split(trim(written), ' ')) {
      if (word.empty()) continue;
      if (name.empty()) {
        name = word;
        continue;
      }
      float number = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
      require(error == std::errc() && end == word.data() + word.size() && std::isfinite(number),
              ErrorKind::invalid_argument, "augmentation '{}': '{}' is not a number", text, word);
      numbers.push_back(number);
    }
  }

  void expect(size_t least, size_t most) const {
    require(numbers.size() >= least && numbers.size() <= most, ErrorKind::invalid_argument,
            "augmentation '{}': got {} numbers, expected {} to {}", text, numbers.size(), least,
            most);
  }
  float number(size_t i, float otherwise) const {
    return i < numbers.size() ? numbers[i] : otherwise;
  }
  int64_t whole(size_t i, int64_t otherwise) const {
    const float value = number(i, static_cast<float>(otherwise));
    require(value >= 0 && value <= 1e6f && value == std::floor(value), ErrorKind::invalid_argument,
            "augmentation '{}': {} is not a number of pixels", text, value);
    return static_cast<int64_t>(value);
  }
};

Transform parse_transform(const TransformWords& words) {
  const std::vector<float>& numbers = words.numbers;
  if (words.name == "crop") {
    words.expect(1, 2);
    return crop(words.whole(0, 0), words.whole(1, 0));
  }
  if (words.name == "centre_crop") {
    words.expect(1, 1);
    return centre_crop(words.whole(0, 0));
  }
  if (words.name == "flip") {
    words.expect(0, 0);
    return flip();
  }
  if (words.name == "normalise" || words.name == "normalize") {
    require(!numbers.empty() && numbers.size() % 2 == 0, ErrorKind::invalid_argument,
            "augmentation '{}': got {} numbers, expected as many means as deviations", words.text,
            numbers.size());
    const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
    return normalise({numbers.begin(), middle}, {middle, numbers.end()});
  }
  if (words.name == "resize") {
    words.expect(1, 2);
    return resize(words.whole(0, 0), words.whole(1, words.whole(0, 0)));
  }
  if (words.name == "jitter") {
    words.expect(1, 3);
    return jitter(numbers[0], words.number(1, 0), words.number(2, 0));
  }
  if (words.name == "cutout") {
    words.expect(1, 1);
    return cutout(words.whole(0, 0));
  }
  if (words.name == "rotate") {
    words.expect(1, 1);
    return rotate(numbers[0]);
  }
  if (words.name == "resized_crop") {
    words.expect(1, 2);
    return resized_crop(words.whole(0, 0), words.number(1, 0.08f));
  }
  if (words.name == "cover") {
    words.expect(1, 1);
    return cover(words.whole(0, 0));
  }
  if (words.name == "channels") {
    words.expect(1, 1);
    return channels(words.whole(0, 0));
  }
  if (words.name == "erase") {
    words.expect(0, 1);
    return erase(words.number(0, 0.5f));
  }
  fail(ErrorKind::invalid_argument, "unknown augmentation '{}'{}", words.text,
       did_you_mean(words.name,
                    {"crop", "centre_crop", "flip", "normalise", "resize", "jitter", "cutout",
                     "rotate", "resized_crop", "cover", "erase", "channels", "mixup"}));
}

}  // namespace

Transform crop(int64_t size, int64_t padding) {
  const std::string text = fmt::format("crop {} {}", size, padding);
  return {text, true,
          [=](Image& image, Random& random) {
            const int64_t rows = image.height + 2 * padding - size + 1;
            const int64_t columns = image.width + 2 * padding - size + 1;
            const auto top = static_cast<int64_t>(random.below(rows)) - padding;
            const auto left = static_cast<int64_t>(random.below(columns)) - padding;
            image = window(image, top, left, size, size);
          },
          [=](const Shape& shape) { return cropped(shape, size, padding, text); }};
}

Transform centre_crop(int64_t size) { return middle_crop(size, 0); }

Transform flip() {
  return {"flip", true,
          [](Image& image, Random& random) {
            if (random.next_u32() & 1) return;
            for (int64_t i = 0; i < image.channels * image.height; ++i)
              std::reverse(image.row(0, i), image.row(0, i) + image.width);
          },
          same_shape};
}

Transform normalise(std::vector<float> means, std::vector<float> deviations) {
  const std::string text =
      fmt::format("normalise {} {}", fmt::join(means, " "), fmt::join(deviations, " "));
  require(!means.empty() && means.size() == deviations.size() &&
              std::all_of(deviations.begin(), deviations.end(), [](float d) { return d > 0; }),
          ErrorKind::invalid_argument,
          "augmentation '{}': expected as many means as deviations, and positive deviations", text);
  return {text, false,
          [=](Image& image, Random&) {
            const int64_t plane = image.height * image.width;
            for (int64_t c = 0; c < image.channels; ++c) {
              const size_t i = means.size() == 1 ? 0 : static_cast<size_t>(c);
              const float mean = means[i], scale = 1 / deviations[i];
              float* pixels = image.pixels.data() + c * plane;
              for (int64_t p = 0; p < plane; ++p) pixels[p] = (pixels[p] - mean) * scale;
            }
          },
          [=, n = static_cast<int64_t>(means.size())](const Shape& shape) {
            require(n == 1 || n == shape[0], ErrorKind::shape,
                    "augmentation '{}': got {} means for images of {}, expected {}", text, n,
                    to_string(shape),
                    shape[0] == 1 ? "1" : fmt::format("1, or {}: one for each channel", shape[0]));
            return shape;
          }};
}

Transform channels(int64_t count) {
  const std::string text = fmt::format("channels {}", count);
  require(count == 1 || count == 3, ErrorKind::invalid_argument,
          "augmentation '{}': expected 1 (grey) or 3 (colour)", text);
  return {text, false,
          [=](Image& image, Random&) {
            if (image.channels == count) return;
            Image changed(count, image.height, image.width);
            const int64_t plane = image.height * image.width;
            const float* const from = image.pixels.data();
            if (count == 1)
              for (int64_t i = 0; i < plane; ++i)  // as decode_picture makes pictures grey
                changed.pixels[i] =
                    0.299f * from[i] + 0.587f * from[plane + i] + 0.114f * from[2 * plane + i];
            else
              for (int64_t c = 0; c < count; ++c)
                std::copy_n(from, plane, changed.pixels.data() + c * plane);
            image = std::move(changed);
          },
          [=](const Shape& shape) {
            require(shape[0] == 1 || shape[0] == 3, ErrorKind::shape,
                    "augmentation '{}': got images of {}, expected 1 or 3 channels", text,
                    to_string(shape));
            return Shape{count, shape[1], shape[2]};
          }};
}

Transform resize(int64_t height, int64_t width) {
  const std::string text = fmt::format("resize {} {}", height, width);
  return {text, false, [=](Image& image, Random&) { image = resized(image, height, width); },
          [=](const Shape& shape) {
            require(height > 0 && width > 0 && height <= kMaxSide && width <= kMaxSide,
                    ErrorKind::invalid_argument, "augmentation '{}': expected 1 to {} pixels", text,
                    kMaxSide);
            return Shape{shape[0], height, width};
          }};
}

Transform jitter(float brightness, float contrast, float saturation) {
  const std::string text = fmt::format("jitter {} {} {}", brightness, contrast, saturation);
  for (const float strength : {brightness, contrast, saturation})
    require(strength >= 0 && strength <= 1, ErrorKind::invalid_argument,
            "augmentation '{}': {} is not between 0 and 1", text, strength);
  return {text, true,
          [=](Image& image, Random& random) {
            spread(image, 0, random.uniform(1 - brightness, 1 + brightness));
            spread(image, mean(image), random.uniform(1 - contrast, 1 + contrast));
            saturate(image, random.uniform(1 - saturation, 1 + saturation));
          },
          same_shape};
}

Transform cutout(int64_t size) {
  return {fmt::format("cutout {}", size), true,
          [=](Image& image, Random& random) {
            const auto top = static_cast<int64_t>(random.below(image.height)) - size / 2;
            const auto left = static_cast<int64_t>(random.below(image.width)) - size / 2;
            const int64_t first = std::max<int64_t>(0, left);
            const int64_t last = std::min(image.width, left + size);
            for (int64_t c = 0; c < image.channels; ++c)
              for (int64_t y = std::max<int64_t>(0, top); y < std::min(image.height, top + size);
                   ++y)
                std::fill(image.row(c, y) + first, image.row(c, y) + last, 0.0f);
          },
          same_shape};
}

Augmentation Augmentation::parse(const std::vector<std::string>& texts) {
  Augmentation result;
  for (const std::string& text : texts) {
    const TransformWords words(text);
    if (words.name == "mixup") {
      words.expect(1, 1);
      require(words.numbers[0] > 0, ErrorKind::invalid_argument,
              "augmentation '{}': the strength must be positive", text);
      result.mixup = words.numbers[0];
    } else {
      result.transforms.push_back(parse_transform(words));
    }
  }
  return result;
}

Augmentation Augmentation::for_testing() const {
  Augmentation result;
  for (const Transform& transform : transforms) {
    if (!transform.random) result.transforms.push_back(transform);
    const TransformWords words(transform.text);
    if (words.name == "crop")
      result.transforms.push_back(middle_crop(words.whole(0, 0), words.whole(1, 0)));
    else if (words.name == "resized_crop")
      result.transforms.push_back(cover(words.whole(0, 0)));
  }
  return result;
}

Augmentation Augmentation::for_viewing() const {
  Augmentation result = for_testing();
  std::erase_if(result.transforms, [](const Transform& transform) {
    return TransformWords(transform.text).name == "normalise";
  });
  return result;
}

Shape Augmentation::output_shape(Shape shape) const {
  require(transforms.empty() || shape.rank() == 3, ErrorKind::shape,
          "augmentation '{}' needs images [channels, height, width], got samples of {}",
          transforms.empty() ? "" : transforms[0].text, to_string(shape));
  for (const Transform& transform : transforms) shape = transform.output_shape(shape);
  return shape;
}

void Augmentation::apply(Image& image, Random& random) const {
  for (const Transform& transform : transforms) transform.apply(image, random);
}

float beta(Random& random, double strength) {
  const double a = gamma(random, strength), b = gamma(random, strength);
  return a + b > 0 ? static_cast<float>(a / (a + b)) : 0.5f;
}

}  // namespace artel::data
