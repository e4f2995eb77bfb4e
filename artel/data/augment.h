// Random changes to images: a network sees each image in many forms.
//
//   trainer.fit(samples, {.augment = artel::data::Augmentation::parse({"crop 32 4", "flip"})});
//
// A change depends on (seed, epoch, sample) alone: the same image in the same epoch is changed in
// the same way whichever worker or thread reads it.
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

// One change of an image.
struct Transform {
  std::string text;  // the form in a configuration file, such as "crop 32 4"
  bool random;       // left out, or replaced, for test data
  std::function<void(Image&, Random&)> apply;
  // The shape after it; throws if it cannot be applied to such images.
  std::function<Shape(const Shape&)> output_shape;
};

// Pads each side with `padding` zeros and cuts a square of `size` pixels at a random place.
Transform crop(int64_t size, int64_t padding = 0);
// Cuts a square from the middle.
Transform centre_crop(int64_t size);
// Mirrors left and right, half of the time.
Transform flip();
// (pixel - mean) / deviation; one pair for all channels or one for each.
Transform normalise(std::vector<float> means, std::vector<float> deviations);
// Grey images as colour ones (3) with equal channels, or colour images as grey ones (1).
Transform channels(int64_t count);
// Scales to this size; averages when shrinking, to avoid aliasing.
Transform resize(int64_t height, int64_t width);
// Multiplies brightness, contrast and saturation by random factors in [1 - x, 1 + x], on pixels in
// [0, 1].
Transform jitter(float brightness, float contrast, float saturation);
// Sets a square of `size` pixels at a random place to zero; it may reach over the border.
Transform cutout(int64_t size);
// Turns by up to this many degrees to either side; what comes from outside is zero.
Transform rotate(float degrees);
// A part of the image with a share of its area between `least` and 1 and sides of up to 3 : 4,
// scaled to a square of `size` pixels. For test data: `cover`.
Transform resized_crop(int64_t size, float least = 0.08f);
// Scaled, with its proportions, until it covers a square of `size` pixels; the middle of that.
Transform cover(int64_t size);
// With this probability, sets a rectangle of 2 to 33 % of the image to zero (random erasing).
Transform erase(float probability = 0.5f);

// What is done to the samples of a data set, in this order.
struct Augmentation {
  std::vector<Transform> transforms;
  // Strength of mixup: inputs and targets become x + (1 - x) mixtures with another sample of the
  // set, x from the Beta(mixup, mixup) distribution. 0 means none. Needs classes as targets; they
  // become f32 [classes], one weight for each.
  double mixup = 0;

  // Reads "crop SIZE [PADDING]", "centre_crop SIZE", "flip", "normalise MEAN... DEVIATION...",
  // "resize HEIGHT [WIDTH]", "jitter BRIGHTNESS [CONTRAST [SATURATION]]", "cutout SIZE", "rotate
  // DEGREES", "resized_crop SIZE [LEAST]", "cover SIZE", "erase [PROBABILITY]", "channels COUNT"
  // and "mixup STRENGTH", in the order in which they are applied. Throws for any other text and
  // suggests the nearest one.
  static Augmentation parse(const std::vector<std::string>& texts);

  // The same without randomness, for test data: crops are taken from the middle; flip, jitter,
  // cutout, rotate, erase and mixup are left out. It accepts the same images and gives the same
  // output shapes.
  Augmentation for_testing() const;
  // The same without `normalise`: how people see what a network is tested on.
  Augmentation for_viewing() const;

  Shape output_shape(Shape shape) const;
  void apply(Image& image, Random& random) const;
};

// A number from the Beta(strength, strength) distribution.
float beta(Random& random, double strength);

}  // namespace artel::data
