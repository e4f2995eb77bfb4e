// Data augmentation: random transforms of images.
//
//   trainer.fit(samples, {.augment = artel::data::Augmentation::parse({"crop 32 4", "flip"})});
//
// A transform depends only on (seed, epoch, sample), so every worker and thread transforms an image
// in the same way.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "artel/base/random.h"
#include "artel/tensor/shape.h"

namespace artel::data {

// Planes of floats: [channels, height, width].
struct Image {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<float> pixels;

  Image() = default;
  Image(int64_t channels, int64_t height, int64_t width)
      : channels(channels), height(height), width(width), pixels(channels * height * width) {}
  Shape shape() const { return {channels, height, width}; }
  float* row(int64_t channel, int64_t y) { return pixels.data() + (channel * height + y) * width; }
  const float* row(int64_t channel, int64_t y) const {
    return pixels.data() + (channel * height + y) * width;
  }
};

// A transform of an image.
struct Transform {
  std::string text;  // the form in a configuration file, such as "crop 32 4"
  bool random;       // omitted or replaced for test data
  std::function<void(Image&, Random&)> apply;
  // The output shape. Throws if the transform does not apply to such images.
  std::function<Shape(const Shape&)> output_shape;
};

// Pads each side with `padding` zeros and crops a square of `size` pixels at a random position.
Transform crop(int64_t size, int64_t padding = 0);
// Crops a square at the centre.
Transform centre_crop(int64_t size);
// Mirrors left and right, half of the time.
Transform flip();
// (pixel - mean) / deviation, with one pair for all channels or one per channel.
Transform normalise(std::vector<float> means, std::vector<float> deviations);
// Converts grey images to colour (3 equal channels), or colour images to grey (1).
Transform channels(int64_t count);
// Scales to this size; averages when shrinking, to avoid aliasing.
Transform resize(int64_t height, int64_t width);
// Multiplies brightness, contrast and saturation by random factors in [1 - x, 1 + x], on pixels in
// [0, 1].
Transform jitter(float brightness, float contrast, float saturation);
// Sets a square of `size` pixels at a random position to zero. It may extend beyond the border.
Transform cutout(int64_t size);
// Rotates by up to this many degrees in either direction. Pixels from outside are zero.
Transform rotate(float degrees);
// Crops a random part with a share of the area between `least` and 1 and an aspect ratio of up to 3
// : 4, and scales it to a square of `size` pixels. Becomes `cover` for test data.
Transform resized_crop(int64_t size, float least = 0.08f);
// Scales the image, keeping its proportions, until it covers a square of `size` pixels, and crops
// the centre.
Transform cover(int64_t size);
// With this probability, sets a rectangle of 2 to 33 % of the image to zero (random erasing).
Transform erase(float probability = 0.5f);

// The transforms of a data set, in order.
struct Augmentation {
  std::vector<Transform> transforms;
  // Strength of mixup: mixes inputs and targets with another sample of the set, with a weight from
  // the Beta(mixup, mixup) distribution. 0 turns it off. Targets must be classes; they become f32
  // [classes], one weight per class.
  double mixup = 0;

  // Reads "crop SIZE [PADDING]", "centre_crop SIZE", "flip", "normalise MEAN... DEVIATION...",
  // "resize HEIGHT [WIDTH]", "jitter BRIGHTNESS [CONTRAST [SATURATION]]", "cutout SIZE", "rotate
  // DEGREES", "resized_crop SIZE [LEAST]", "cover SIZE", "erase [PROBABILITY]", "channels COUNT"
  // and "mixup STRENGTH", in the order in which they are applied. Throws for any other text and
  // suggests the nearest one.
  static Augmentation parse(const std::vector<std::string>& texts);

  // The deterministic version for test data: crops are taken from the centre; flip, jitter, cutout,
  // rotate, erase, and mixup are omitted. Input and output shapes are the same.
  Augmentation for_testing() const;
  // The version for test data without `normalise`, for displaying samples.
  Augmentation for_viewing() const;

  Shape output_shape(Shape shape) const;
  void apply(Image& image, Random& random) const;
};

// A number from the Beta(strength, strength) distribution.
float beta(Random& random, double strength);

}  // namespace artel::data
